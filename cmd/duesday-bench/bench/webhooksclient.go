package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// A hookClient is one connection of a sender of webhooks: as cheap a client as possible, since it
// shares the machine with the measured side.
type hookClient struct {
	conn   net.Conn
	in     *bufio.Reader
	copies [][]byte // by template: a request, ready but for its slots
	bodies []int    // where the body begins
	signed []int    // where the mac begins
	answer []byte
	want   []byte // a part of the answer
}

func newHookClient(ctx context.Context, address string, list []template, signature string) (*hookClient, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &hookClient{conn: conn, in: bufio.NewReaderSize(conn, 4<<10)}
	for _, t := range list {
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nAccept: */*; q=0.5, application/xml\r\nCache-Control: "+
			"no-cache\r\nContent-Length: %d\r\n"+
			"Content-Type: application/json; charset=utf-8\r\nUser-Agent: Stripe/1.0 "+
			"(+https://stripe.com/docs/webhooks)\r\nStripe-Signature: %s", hookPath, address, len(t.body), signature)
		request := fmt.Appendf(nil, "%s%*s\r\n\r\n%s", head, hex.EncodedLen(len(mac{})), "", t.body)
		c.copies, c.signed, c.bodies = append(c.copies, request), append(c.signed, len(head)),
			append(c.bodies, len(request)-len(t.body))
	}
	return c, nil
}

// send sends the event and waits for the answer, which has to have the part that is wanted.
func (c *hookClient) send(t *template, e *hookEvent, m mac) error {
	request := c.copies[e.template]
	hex.Encode(request[c.signed[e.template]:], m[:])
	e.fill(t, request[c.bodies[e.template]:])
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	status, err := c.receive()
	if err != nil {
		return err
	}
	if status != 200 || !bytes.Contains(c.answer, c.want) || bytes.Contains(c.answer, []byte(`"duplicate"`)) {
		return fmt.Errorf("event %s: got %d %s", stripeID("evt", e.event), status, c.answer)
	}
	return nil
}

// receive reads an answer that has a Content-Length.
func (c *hookClient) receive() (status int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, errors.New("the answer is no HTTP")
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, err
	}
	size := -1
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if size, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
	if size < 0 {
		return 0, errors.New("the answer has no Content-Length")
	}
	c.answer = append(c.answer[:0], make([]byte, size)...)
	_, err = io.ReadFull(c.in, c.answer)
	return status, err
}
