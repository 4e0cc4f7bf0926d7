// Package dynamotest gives tests a DynamoDB to talk to: Endpoint starts DynamoDB Local
// once for the test process, Client talks to it, Prefix keeps tests out of each other's
// tables, and NewProxy puts the faults of a network and of a loaded service in front.
//
// It is for tests alone. It does not make tables, knows nothing of Duesday's schema, and
// never talks to AWS. What the proxy simulates and what it does not is said at Proxy.
package dynamotest
