package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/listen"
	"github.com/duesday/duesday/internal/socket"
)

// protocol is of the connection of a client and the holder: HTTP/2. Its pings find a process that
// stands still. Its GOAWAY tells which requests a holder that ends in order has not carried out:
// they are sent to the next one.
func protocol() (*http.Protocols, *http.HTTP2Config) {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p, &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: 3 * time.Second,
		MaxConcurrentStreams: 1 << 16} // a client has one connection
}

const (
	pathHolder = "/v1/holder"     // answers with the holder's greeting
	pathEnd    = "/v1/holder/end" // answers when the holder ends
)

// A greeting is the same in all processes of a file.
type greeting struct {
	Version    string `json:"version"`
	Parameters string `json:"parameters"`
}

func (o *Options) greeting() greeting {
	return greeting{o.Version, fmt.Sprintf("latency %v, keylife %v, unknown %v, lost %v, busy %v, cached500 %v, seed %d",
		o.Latency, o.KeyLife, o.UnknownRate, o.LostRate, o.BusyRate, o.CachedRate, o.Seed)}
}

// checkOwner refuses another user's file, and keeps root from making one in another user's folder.
func checkOwner(file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) || os.Geteuid() != 0 {
		return socket.CheckOwner(file)
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			if err == nil && info.Mode()&fs.ModeSticky != 0 {
				return nil // such as /tmp: everybody's
			}
			return socket.CheckOwner(dir)
		}
	}
}

// place returns the file without symbolic links, beside which the holder's files lie. The file
// exists.
func (s *shared) place() (string, error) {
	file, err := filepath.EvalSymlinks(s.file)
	if err != nil {
		return "", err
	}
	return filepath.Abs(file)
}

const holderEnding = ".holder" // of the file that names the holder and its socket

// holder returns how the holder names itself, and its socket, or "".
func (s *shared) holder() (who, at string) {
	file, err := s.place()
	if err != nil {
		return socket.Unnamed, ""
	}
	if socket.CheckOwner(file+holderEnding) != nil { // the folder is everybody's, and the file is not the holder's
		return socket.Unnamed, ""
	}
	return socket.ReadHolder(file+holderEnding, file)
}

func (s *shared) hold() (*session, error) {
	f, err := openFile(s.file)
	if errors.Is(err, ErrLocked) {
		who, _ := s.holder()
		err = fmt.Errorf("%w: %s has it", err, who)
	}
	if err != nil {
		return nil, fmt.Errorf("sandbox ledger: %w", err)
	}
	l, err := s.listen(&f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox ledger: %w", err), f.Close())
	}
	// The others are greeted before the file is read, which may take a while. Their calls wait.
	read := make(chan struct{})
	var handler http.Handler
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- s.serve(ctx, l, func() http.Handler { <-read; return handler })
	}()
	end := func() error {
		cancel()
		return <-served
	}
	box, err := newSandbox(f, s.o)
	handler = Handler(box)
	if err != nil {
		handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answer(w, reply{}, fmt.Errorf("%w: %w", billing.ErrNotExecuted, err))
		})
	}
	close(read)
	if err != nil {
		return nil, errors.Join(err, end(), f.Close())
	}
	return &session{Shared: box, End: func() error { return errors.Join(end(), box.Close()) }}, nil
}

func (s *shared) listen(f *lockedFile) (net.Listener, error) {
	file, err := s.place()
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Split(file)
	_, dead := s.holder()
	socket.Clear(dead)
	at, err := socket.Path(dir, name+".sock")
	if err != nil {
		return nil, err
	}
	f.holder = file + holderEnding
	return socket.Listen(socket.Post{Held: file, File: f.holder, Holder: s.o.Holder, Socket: at})
}

// serve greets clients and serves them with the handler, which may keep them waiting.
func (s *shared) serve(ctx context.Context, l net.Listener, handler func() http.Handler) error {
	mux := http.NewServeMux()
	mux.HandleFunc(pathHolder, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(s.o.greeting()) // a client that has gone learns nothing
	})
	mux.HandleFunc(pathEnd, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // else it ends early, and is asked again
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet { // it breaks off when the holder ends, and goes on at the next one
			cut := make(chan struct{})
			stop := context.AfterFunc(ctx, func() {
				defer close(cut)
				_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
			})
			defer func() {
				if !stop() {
					<-cut // w ends with the handler
				}
			}()
		}
		handler().ServeHTTP(w, r)
	})
	server := listen.NewServer(mux, writeTimeout+s.o.Latency)
	server.Protocols, server.HTTP2 = protocol()
	return listen.Serve(ctx, l, server, slog.New(slog.DiscardHandler))
}

// connect connects to the holder, and compares greetings. Its error is ErrHolder, or temporary.
func (s *shared) connect(ctx context.Context) (*session, error) {
	who, at := s.holder()
	if at == "" {
		return nil, ErrLocked // it has just taken the file
	}
	c := s.client(at)
	theirs, err := c.greet(ctx)
	ours := s.o.greeting()
	switch {
	case err == nil && theirs == ours:
		return s.follow(c, who), nil
	case err == nil && theirs.Version != ours.Version:
		err = fmt.Errorf("%w: %s has it, which is Duesday %s, and this is %s", ErrHolder, who, theirs.Version,
			ours.Version)
	case err == nil:
		err = fmt.Errorf("%w: %s has it, with %s; this process has %s", ErrHolder, who, theirs.Parameters,
			ours.Parameters)
	}
	return nil, errors.Join(err, c.Close())
}

// follow returns the session of a holder's client. It ends with the holder, whom an open connection
// would keep waiting.
func (s *shared) follow(c *Client, who string) *session {
	ctx, cancel := context.WithCancel(context.Background())
	x := &session{Shared: c, Holder: who, End: func() error { cancel(); return c.Close() }}
	go func() {
		if response, err := c.send(ctx, pathEnd, nil); err == nil {
			_ = response.Body.Close()
		}
		_ = s.election.End(x) // the connection is gone
	}()
	return x
}

// client returns the Client of a holder, on one connection: the next holder is greeted first.
func (s *shared) client(at string) *Client {
	var dialled atomic.Bool
	t := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, &net.OpError{Op: "dial", Net: "unix", Err: net.ErrClosed}
		}
		return socket.Dial(ctx, at)
	}}
	t.Protocols, t.HTTP2 = protocol()
	return &Client{base: "http://sandbox", timeout: DefaultTimeout + s.o.Latency, http: &http.Client{Transport: t}}
}

func (c *Client) greet(ctx context.Context) (g greeting, err error) {
	response, err := c.send(ctx, pathHolder, nil)
	if err != nil {
		return g, err
	}
	defer response.Body.Close()
	return g, json.NewDecoder(response.Body).Decode(&g)
}
