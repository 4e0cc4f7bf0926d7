// Package settings parses, validates and stores a store's settings, such as the retry days and the time of
// the daily jobs, and keeps their history.
//
// It does not apply the settings: package engine, package mail and package status do.
package settings
