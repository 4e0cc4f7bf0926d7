package link

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"
)

// Silence is the time without a beat or an answer taken after which a connection is given up.
const Silence = 5 * time.Second

const (
	beatEvery = time.Second
	headBytes = 4 + 8 + 1 // length of request, kind and body; request; kind
	maxFrame  = 64 << 20  // a page is cut at pageBytes, a commit has 4 MB at most
	maxQueued = 256       // frames to be sent
)

// Kinds of frames. An answer has the kind of its request.
const (
	kindBeat byte = iota
	kindGreeting
	kindGet
	kindQuery
	kindScan
	kindCommit
	kindClaim
	kindRelease
	kindCheckpoint
	kindEnd // of the holder's frames: what it has not answered it has not carried out
)

// A frame is a request, an answer or a beat.
type frame struct {
	request uint64
	kind    byte
	body    []byte
}

// A wire sends and receives frames. send is safe for concurrent use; receive is not.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	out  chan frame
	done chan struct{} // closed when the wire has broken

	once  sync.Once
	cause error // why it has broken; set before done is closed
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, 64<<10), out: make(chan frame, maxQueued),
		done: make(chan struct{})}
}

func (w *wire) fail(err error) {
	w.once.Do(func() {
		w.cause = err
		close(w.done)
		_ = w.conn.Close() // the cause is known
	})
}

// send queues a frame. It returns false if the wire has broken.
func (w *wire) send(f frame) bool {
	select {
	case <-w.done:
		return false
	default:
	}
	select {
	case w.out <- f:
		return true
	case <-w.done:
		return false
	}
}

// write sends the queued frames, and beats while there are none, until the wire breaks or cannot be
// written to. beats: this is the holder's side.
func (w *wire) write(beats bool) error {
	out := bufio.NewWriterSize(w.conn, 64<<10)
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		if len(w.out) == 0 {
			runtime.Gosched() // others may have more: half of a client's time was writes of one frame
		}
		var f frame
		select {
		case f = <-w.out:
		case <-w.done:
			return w.cause
		default: // nothing is waiting: what was written may leave
			if err := out.Flush(); err != nil {
				return err
			}
			select {
			case f = <-w.out:
			case <-w.done:
				return w.cause
			case <-tick.C:
				if !beats {
					continue
				}
			}
		}
		err := w.put(out, f)
		if err == nil && f.kind == kindEnd {
			err = cmp.Or(out.Flush(), errEnd)
		}
		if err != nil {
			return err
		}
	}
}

func (w *wire) put(out *bufio.Writer, f frame) error {
	if err := w.conn.SetWriteDeadline(silence()); err != nil {
		return err
	}
	var head [headBytes]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(f.body)+headBytes-4))
	binary.BigEndian.PutUint64(head[4:], f.request)
	head[12] = f.kind
	_, err := out.Write(head[:])
	if err == nil {
		_, err = out.Write(f.body)
	}
	return err
}

func silence() time.Time { return time.Now().Add(Silence) }

var (
	errFrame = errors.New("a malformed frame")
	errEnd   = errors.New("the holder has stopped serving")
)

// receive returns the next frame. silent: the other side may send nothing for any time.
func (w *wire) receive(silent bool) (frame, error) {
	if !silent {
		_ = w.conn.SetReadDeadline(silence()) // a broken connection may still have frames to be read
	}
	var head [headBytes]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < headBytes-4 || n > maxFrame {
		return frame{}, fmt.Errorf("%w: %d bytes", errFrame, n)
	}
	f := frame{request: binary.BigEndian.Uint64(head[4:]), kind: head[12], body: make([]byte, n-(headBytes-4))}
	_, err := io.ReadFull(w.in, f.body)
	return f, err
}
