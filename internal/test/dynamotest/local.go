// Package dynamotest provides a local DynamoDB for tests. Endpoint starts DynamoDB Local once for the test
// process, Client talks to it, and Prefix keeps tests out of each other's tables. NewProxy adds
// the faults of a network and of a loaded service; its comment lists them.
//
// It is only for tests. It creates no tables, knows no schema, and never calls AWS.
package dynamotest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Where DynamoDB Local is, when it is not where `make dynamodb-local` puts it.
const (
	folderVariable   = "DUESDAY_DYNAMODB_LOCAL"    // a folder with DynamoDBLocal.jar
	endpointVariable = "DUESDAY_DYNAMODB_ENDPOINT" // the URL of a running one
)

const (
	startTries   = 5
	startTimeout = 2 * time.Minute // a busy machine with a cold disk
)

// errMissing is the reason to skip: DynamoDB Local or Java is missing on this machine.
var errMissing = errors.New("DynamoDB Local or Java is not installed")

// Endpoint returns the URL of a DynamoDB Local, such as "http://127.0.0.1:18000". The first call of
// the process starts it, in memory, for all tests of the process; it ends with the process, however
// that ends. All credentials and regions see the same tables.
//
// Without DynamoDB Local or Java the test is skipped and names the remedy; under CI=true it fails.
func Endpoint(t testing.TB) string {
	t.Helper()
	endpoint, err := local()
	switch {
	case err == nil:
		return endpoint
	case errors.Is(err, errMissing) && os.Getenv("CI") != "true":
		t.Skipf("SKIPPED, NOT TESTED on DynamoDB: %v. `make dynamodb-local` fetches it.", err)
	default:
		t.Fatalf("%v (`make dynamodb-local` fetches it)", err)
	}
	return ""
}

// local starts DynamoDB Local once; later calls get the same answer.
var local = sync.OnceValues(func() (string, error) {
	if running := os.Getenv(endpointVariable); running != "" {
		return running, nil
	}
	folder, err := findFolder()
	if err == nil {
		var java string
		if java, err = findJava(); err == nil {
			return startAnywhere(java, folder)
		}
	}
	if errors.Is(err, errMissing) {
		fmt.Fprintf(os.Stderr, "\n*** TESTS ON DYNAMODB ARE SKIPPED: %v. `make dynamodb-local` fetches it. ***\n\n", err)
	}
	return "", err
})

// Own makes Endpoint start a DynamoDB Local for this process also when others share one. Tests that
// mainly make and change tables need it: while others write, a DynamoDB Local may fail such requests
// for minutes.
func Own() error { return os.Unsetenv(endpointVariable) }

func findFolder() (string, error) {
	if folder := os.Getenv(folderVariable); folder != "" {
		if _, err := os.Stat(filepath.Join(folder, "DynamoDBLocal.jar")); err != nil {
			return "", fmt.Errorf("%s=%s must name a folder with DynamoDBLocal.jar: %w", folderVariable, folder, err)
		}
		return folder, nil
	}
	// From this file's place: a test may have changed the working directory.
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", fmt.Errorf("%w: built without the paths of its sources, so %s has to name the folder", errMissing,
			folderVariable)
	}
	folder := filepath.Join(filepath.Dir(file), "..", "..", "..", ".cache", "dynamodb-local") // beside go.mod
	if _, err := os.Stat(filepath.Join(folder, "DynamoDBLocal.jar")); err != nil {
		return "", fmt.Errorf("%w: no DynamoDBLocal.jar in %s", errMissing, folder)
	}
	return folder, nil
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		return filepath.Join(home, "bin", "java"), nil
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("%w: it needs Java 17 or later, and there is no java in the PATH", errMissing)
	}
	return java, nil
}

// startAnywhere starts it on a free port. Between being found free and being taken the port may go
// to somebody else; then the next one is tried. The first is chosen by the process id, below the
// ports given out by systems: two test processes at once try different ones.
func startAnywhere(java, folder string) (string, error) {
	var errs []error
	for port, tries := 12000+os.Getpid()%18000, 0; tries < startTries; port++ {
		free, err := net.Listen("tcp", ":"+strconv.Itoa(port)) // all interfaces, as DynamoDB Local does
		if err != nil {
			if port > 32000 {
				return "", fmt.Errorf("no free port for DynamoDB Local: %w", err)
			}
			continue
		}
		if err := free.Close(); err != nil {
			return "", err
		}
		tries++
		err = start(java, folder, port)
		if err == nil {
			return "http://127.0.0.1:" + strconv.Itoa(port), nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("DynamoDB Local does not start: %w", errors.Join(errs...))
}

// dieWithUs becomes Java, and leaves a watcher behind. The watcher kills it at the end of the
// standard input: then the test process, which holds the other end of the pipe, has ended in some
// way. Go has no hook for the end of all tests.
const dieWithUs = `exec 3<&0 </dev/null
{ cat <&3; kill -9 $$; } >/dev/null 2>&1 &
exec 3<&-
exec "$@"`

// start runs DynamoDB Local on the port and returns once it answers.
func start(java, folder string, port int) error {
	cmd := exec.Command("sh", "-c", dieWithUs, "sh", java, "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Djava.library.path=DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar",
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port))
	cmd.Dir = folder
	said, err := os.CreateTemp("", "dynamodb-local")
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = said, said
	held, err := cmd.StdinPipe()
	err = errors.Join(err, os.Remove(said.Name())) // it is gone when nobody has it open
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = answers("http://127.0.0.1:"+strconv.Itoa(port), said, ended)
	if err != nil {
		return errors.Join(fmt.Errorf("port %d: %w\n%s", port, err, output(said)), held.Close(), said.Close())
	}
	return nil
}

// answers waits until the URL answers. DynamoDB Local goes on without a port, and only says so.
func answers(url string, said *os.File, ended <-chan error) error {
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	timeout := time.After(startTimeout)
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("it ended: %v", err)
		case <-timeout:
			return fmt.Errorf("no answer within %s", startTimeout)
		case <-again.C:
		}
		if strings.Contains(output(said), "Failed to bind") {
			return errors.New("the port is taken")
		}
		response, err := client.Get(url) // a 400: a request without a signature
		if err != nil {
			continue
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
		if !strings.Contains(output(said), "Failed to bind") {
			return nil
		}
	}
}

// output returns the first few kilobytes of the file.
func output(f *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 16<<10))
	return string(text)
}

// DynamoDB Local wants a signature, and does not check it.
const (
	Region    = "us-east-1"
	AccessKey = "test"
	secretKey = "test"
)

// Client returns a client of Endpoint. It sends a request up to 30 times, for about a minute, if the
// connection breaks or DynamoDB Local answers InternalFailure, as it does to changes of tables while
// other packages keep it busy. It needs nothing of the environment.
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	return dynamodb.New(ClientAt(Endpoint(t)).Options(), func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.MaxBackoff = 30, 2*time.Second
		})
	})
}

// ClientAt returns a client of another endpoint, which lets faults reach its caller: no retries.
func ClientAt(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint), Region: Region, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: secretKey, Source: "dynamotest"}, nil
		}),
	})
}

// Environ returns the environment for the SDK's default chain in another process, as "KEY=value".
// It keeps that process from reading anybody's files or asking the network for credentials.
func Environ() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_SESSION_TOKEN=",
		"AWS_REGION=" + Region, "AWS_PROFILE=", "AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull, "AWS_EC2_METADATA_DISABLED=true"}
}

// Setenv puts Environ into this process's environment for the time of a test, not a parallel one.
func Setenv(t *testing.T) {
	t.Helper()
	for _, pair := range Environ() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// Prefix returns the beginning of table names for this test alone: "t", 13 characters, a dash.
func Prefix(testing.TB) string {
	return "t" + strings.ToLower(rand.Text()[:13]) + "-"
}
