package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

const (
	maxIdleConnections = 256 // to one host; a run's workers each keep theirs
	connectTimeout     = 3 * time.Second
	idleTimeout        = 60 * time.Second
	findCredentials    = 15 * time.Second // an instance role is asked over the network
)

// Dial returns a client by the SDK's default chain, with the given region and endpoint instead
// of the chain's. The client retries nothing, and has no time limit of
// its own beyond connecting. It is an error when there is no region or are no credentials;
// DynamoDB itself is asked nothing.
func Dial(ctx context.Context, region, endpoint string) (*dynamodb.Client, error) {
	transport := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = connectTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*maxIdleConnections, maxIdleConnections
			t.IdleConnTimeout = idleTimeout
			t.TLSHandshakeTimeout = connectTimeout
		})
	// The SDK's own log is off: the errors have all facts, and it warns on standard error about
	// each error answer with an unread body.
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(transport), config.WithRegion(region),
		config.WithLogger(logging.Nop{}),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region: say dynamodb:?region=eu-west-1 in the store URL, or set AWS_REGION")
	}
	if err := haveCredentials(ctx, cfg.Credentials); err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{}
		if endpoint != "" {
			o.BaseEndpoint = aws.String(endpoint)
		}
	}), nil
}

func haveCredentials(ctx context.Context, from aws.CredentialsProvider) error {
	ctx, cancel := context.WithTimeout(ctx, findCredentials)
	defer cancel()
	if from == nil {
		return errors.New("no AWS credentials are configured")
	}
	if _, err := from.Retrieve(ctx); err != nil {
		return fmt.Errorf("no AWS credentials: the SDK's default chain (environment, ~/.aws, web identity, "+
			"container or instance role) has none: %w", err)
	}
	return nil
}
