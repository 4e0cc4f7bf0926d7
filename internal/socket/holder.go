package socket

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// A Post is what a holder leaves beside the folder or file that it holds, so that others find it.
type Post struct {
	Held   string // path of the folder or file
	File   string // path of the file that names the holder and its socket
	Holder string // name for people
	Socket string // path; "": none

	since time.Time // of the first Write
}

// Write writes the file: this process's name for people, the path of its socket, and a checksum of
// both. It replaces what is there.
func (p *Post) Write() error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	p.since = cmp.Or(p.since, time.Now())
	text := fmt.Sprintf("%q (pid %d on host %s since %s%s)\n%s\n", cmp.Or(p.Holder, "another program"), os.Getpid(), host,
		p.since.UTC().Format(time.RFC3339), place(), p.Socket)
	if err := os.Remove(p.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(p.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text+sum(p.Held, text))
	return errors.Join(err, f.Close())
}

// sum differs for an edited text, and for the text of another file or folder, such as a copy.
func sum(held, text string) string {
	if info, err := os.Stat(held); err == nil {
		if own, ok := info.Sys().(*syscall.Stat_t); ok {
			text += fmt.Sprint(own.Ino)
		}
	}
	return fmt.Sprintf("%08x\n", crc32.ChecksumIEEE([]byte(text)))
}

// place names the namespace of the pid and the boot: in a container every process may be pid 1.
func place() (text string) {
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err == nil {
		text += ", namespace " + namespace
	}
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		text += ", boot " + strings.TrimSpace(string(boot))
	}
	return text
}

// ReadHolder reads the file at the path, and returns the name for people of whoever holds held, and the
// path of its socket. It returns Unnamed and "" if the holder has written nothing yet, or someone has
// edited the file or copied it from elsewhere.
func ReadHolder(path, held string) (holder, socket string) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() { // a pipe would wait for a writer
		return Unnamed, ""
	}
	f, err := os.Open(path)
	if err != nil {
		return Unnamed, ""
	}
	text, err := io.ReadAll(io.LimitReader(f, 1000))
	lines := strings.SplitAfterN(string(text), "\n", 3)
	if err = errors.Join(err, f.Close()); err != nil || len(lines) < 3 || lines[2] != sum(held, lines[0]+lines[1]) {
		return Unnamed, ""
	}
	return strings.TrimSuffix(lines[0], "\n"), strings.TrimSuffix(lines[1], "\n")
}

// Unnamed stands for a holder without a name.
const Unnamed = "another process"
