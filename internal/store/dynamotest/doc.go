// Package dynamotest gives tests a DynamoDB. Endpoint starts DynamoDB Local once for the test
// process, Client talks to it, and Prefix keeps tests out of each other's tables. NewProxy adds
// the faults of a network and of a loaded service; its comment lists them.
//
// It is for tests alone. It does not make tables, knows nothing of Duesday's schema, and never
// talks to AWS.
package dynamotest
