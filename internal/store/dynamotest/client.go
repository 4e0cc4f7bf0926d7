package dynamotest

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// DynamoDB Local wants a signature, and does not check it.
const (
	Region    = "us-east-1"
	AccessKey = "test"
	secretKey = "test"
)

// Client returns a client of Endpoint. It sends a request again if the connection breaks: a test
// has met a closed connection, for a cause not found. It needs nothing of the environment.
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	return dynamodb.New(ClientAt(Endpoint(t)).Options(), func(o *dynamodb.Options) { o.Retryer = retry.NewStandard() })
}

// ClientAt returns a client of another endpoint, such as a proxy's URL. It does not retry, so that
// faults reach its caller.
func ClientAt(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(endpoint),
		Region:       Region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: AccessKey, SecretAccessKey: secretKey, Source: "dynamotest"}, nil
		}),
		Retryer: aws.NopRetryer{},
	})
}

// Environ returns the environment for the SDK's default chain in another process, as
// "KEY=value". It keeps that process from reading anybody's files or
// asking the network for credentials.
func Environ() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + AccessKey,
		"AWS_SECRET_ACCESS_KEY=" + secretKey,
		"AWS_SESSION_TOKEN=",
		"AWS_REGION=" + Region,
		"AWS_PROFILE=",
		"AWS_CONFIG_FILE=" + os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull,
		"AWS_EC2_METADATA_DISABLED=true",
	}
}

// Setenv puts Environ into the environment of this process for the time of the test,
// which therefore cannot be a parallel one.
func Setenv(t *testing.T) {
	t.Helper()
	for _, pair := range Environ() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// Prefix returns the beginning of table names for this test alone, of this process
// or another: "t" and 13 letters and digits, then a dash.
func Prefix(testing.TB) string {
	return "t" + strings.ToLower(rand.Text()[:13]) + "-"
}
