package socket

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// WriteHolder writes this process's name for people, and the path of its socket, "" for none.
func WriteHolder(w io.Writer, holder, socket string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	_, err = fmt.Fprintf(w, "%q (pid %d on host %s since %s%s)\n%s\n", cmp.Or(holder, "another program"), os.Getpid(), host,
		time.Now().UTC().Format(time.RFC3339), place(), socket)
	return err
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

// ReadHolder returns the holder's name for people, and the path of its socket, "" for none yet.
func ReadHolder(r io.Reader) (holder, socket string) {
	var text bytes.Buffer
	_, err := io.CopyN(&text, r, 1000)
	holder, rest, whole := strings.Cut(text.String(), "\n")
	if !whole || (err != nil && err != io.EOF) {
		return Unnamed, ""
	}
	if line, _, whole := strings.Cut(rest, "\n"); whole {
		socket = line
	}
	return holder, socket
}

// Unnamed stands for a holder without a name.
const Unnamed = "another process"
