package dynamotest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func TestItAnswers(t *testing.T) {
	endpoint := Endpoint(t)
	if _, err := Client(t).ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Fatal(err)
	}
	if again := Endpoint(t); again != endpoint {
		t.Errorf("the second call started another: %s, then %s", endpoint, again)
	}
}

// childVariable makes TestBeAChild, in a process of its own, start DynamoDB Local.
const childVariable = "DUESDAY_TEST_CHILD"

// TestBeAChild is the process that the tests below, and with.sh, start: it says where its
// DynamoDB Local is and stays until its standard input is closed.
func TestBeAChild(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		t.Skip("only a process that another test starts has something to do here")
	}
	fmt.Println("endpoint", Endpoint(t))
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err == nil {
		t.Error("nobody writes to this process")
	}
}

// startChild returns a test process of its own and where its DynamoDB Local is.
func startChild(t *testing.T) (child *exec.Cmd, endpoint string) {
	t.Helper()
	child = exec.Command(os.Args[0], "-test.run=^TestBeAChild$", "-test.v")
	child.Env = append(os.Environ(), childVariable+"=1", endpointVariable+"=")
	child.Stderr = os.Stderr
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	said, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if child.ProcessState == nil {
			_ = child.Process.Kill()
			_ = child.Wait()
		}
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "endpoint "); ok {
			return child, at
		}
	}
	t.Fatal("the child did not say where its DynamoDB Local is")
	return nil, ""
}

// TestItDiesWithItsProcess: also when that is killed and can do nothing any more.
func TestItDiesWithItsProcess(t *testing.T) {
	ours := Endpoint(t)
	child, theirs := startChild(t)
	if os.Getenv(endpointVariable) == "" && ours == theirs {
		t.Errorf("two processes share %s", ours)
	}
	response, err := http.Get(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the child was not killed")
	}
	// A connection that stands until the other side is gone tells the moment.
	address := strings.TrimPrefix(theirs, "http://")
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break // refused: it is gone
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still answers after its process was killed", theirs)
		}
		_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if _, err := Client(t).ListTables(t.Context(), &dynamodb.ListTablesInput{}); err != nil {
		t.Errorf("ours went with it: %v", err)
	}
}

func TestPrefixesAreValidAndDifferent(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		prefix := Prefix(t)
		if !regexp.MustCompile(`^[a-z][a-z0-9]{13}-$`).MatchString(prefix) || seen[prefix] {
			t.Fatalf("prefix %q", prefix)
		}
		seen[prefix] = true
	}
}

// TestATakenPortIsNotOurs: DynamoDB Local that does not get its port goes on without, and
// what answers there is somebody else.
func TestATakenPortIsNotOurs(t *testing.T) {
	Endpoint(t) // skips where there is none
	folder, err := findFolder()
	if errors.Is(err, errMissing) {
		t.Skipf("one runs elsewhere: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	java, err := findJava()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = start(java, folder, taken.Addr().(*net.TCPAddr).Port)
	if err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("got %v, want: the port is taken", err)
	}
}
