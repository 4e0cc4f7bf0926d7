package main

import (
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/test/dynamotest"
)

// TestStatus_TablesOnDynamoDB: status names what the store's tables lack, and a process that may
// not ask says that it does not know. A folder has no tables.
func TestStatus_TablesOnDynamoDB(t *testing.T) {
	c, client, prefix := newCLI(t), dynamotest.Client(t), dynamotest.Prefix(t)
	proxy := dynamotest.NewProxy(t, dynamotest.Endpoint(t), dynamotest.Options{})
	at := "dynamodb:?" + url.Values{"prefix": {prefix}, "endpoint": {proxy.URL()}, "region": {dynamotest.Region}}.Encode()
	c.must("store", "create", "--store", at)
	shows := func(code int, state, found, next string, args ...string) {
		t.Helper()
		for _, x := range c.object(code, append([]string{"status"}, args...)...)["checks"].([]any) {
			check := x.(map[string]any)
			if check["check"] != "tables" {
				continue
			}
			equal(t, "state", check["state"], state)
			contains(t, check["found"].(string), found)
			if text, _ := check["next"].(string); !strings.Contains(text, next) {
				t.Errorf("next %q, want %q", text, next)
			}
			return
		}
		if state != "" {
			t.Errorf("status has no tables")
		}
	}
	c.must("import", c.file("book.csv", smallBook))
	shows(exitDone, "", "", "")
	shows(exitDone, "warning", "deletion protection is off for 7 of 7 tables", "store create --point-in-time-recovery", "--store", at)
	c.must("store", "create", "--deletion-protection", "--store", at)
	shows(exitDone, "ok", "all tables are set up as required", "", "--store", at)

	for _, operation := range []string{"DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups"} {
		proxy.Forbid(operation)
		what := map[bool]string{true: "may not be asked for", false: "is not allowed to describe them"}[operation == "DescribeContinuousBackups"]
		shows(exitPerson, "unknown", what, "schema iam runtime", "--store", at)
		proxy.Forbid()
	}

	table := prefix + "recurring-payments"
	if _, err := client.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: &table,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{
			IndexName: aws.String("GSI-1")}}}}); err != nil {
		t.Fatal(err)
	}
	shows(exitPerson, "wrong", "index GSI-1", "store describe", "--store", at)
}
