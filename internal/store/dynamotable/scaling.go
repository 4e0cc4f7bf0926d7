package dynamotable

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/duesday/duesday/internal/store"
)

// A scalable is a capacity that autoscaling can change: the reads or the writes of a table
// or of an index.
type scalable struct {
	resource  string // table/NAME or table/NAME/index/INDEX
	dimension types.ScalableDimension
	metric    types.MetricType // whose utilization is held; also the name of the policy
}

// scalables returns what autoscaling is told of a table, in a fixed order.
func scalables(t store.Table) []scalable {
	table := "table/" + t.Name
	list := []scalable{
		{table, types.ScalableDimensionDynamoDBTableReadCapacityUnits, types.MetricTypeDynamoDBReadCapacityUtilization},
		{table, types.ScalableDimensionDynamoDBTableWriteCapacityUnits, types.MetricTypeDynamoDBWriteCapacityUtilization},
	}
	for i := range t.Indexes {
		index := table + "/index/" + t.Indexes[i].Name
		list = append(list,
			scalable{index, types.ScalableDimensionDynamoDBIndexReadCapacityUnits, types.MetricTypeDynamoDBReadCapacityUtilization},
			scalable{index, types.ScalableDimensionDynamoDBIndexWriteCapacityUnits, types.MetricTypeDynamoDBWriteCapacityUtilization})
	}
	return list
}

// autoscale registers the table and all indexes that it has with Application Auto Scaling, which uses
// its own service-linked role. Both requests replace what was there.
func (m *maker) autoscale(ctx context.Context, t store.Table, d Description) error {
	p := m.settings.Provisioned
	if p == nil {
		return nil
	}
	client := scaler(m.client, p.ScalingEndpoint)
	if client == nil {
		m.progress.say(t.Name, "autoscaling not set: there is no Application Auto Scaling at %s; the units stay as they are", endpoint(m.client))
		return nil
	}
	for _, s := range scalables(d.Table) {
		if err := p.scale(ctx, client, s); err != nil {
			return fmt.Errorf("autoscaling for %s, %s: %w", s.resource, s.dimension, err)
		}
	}
	m.progress.say(t.Name, "autoscaling on: %d to %d units at %d %%, table and indexes", p.MinUnits, p.MaxUnits, p.TargetUtilization)
	return nil
}

func (p *Provisioned) scale(ctx context.Context, client *applicationautoscaling.Client, s scalable) error {
	_, err := client.RegisterScalableTarget(ctx, &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace: types.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension,
		MinCapacity: &p.MinUnits, MaxCapacity: &p.MaxUnits})
	if err != nil {
		return err
	}
	_, err = client.PutScalingPolicy(ctx, &applicationautoscaling.PutScalingPolicyInput{
		ServiceNamespace: types.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension,
		PolicyName: aws.String(string(s.metric)), PolicyType: types.PolicyTypeTargetTrackingScaling,
		TargetTrackingScalingPolicyConfiguration: &types.TargetTrackingScalingPolicyConfiguration{
			TargetValue:                   aws.Float64(float64(p.TargetUtilization)),
			PredefinedMetricSpecification: &types.PredefinedMetricSpecification{PredefinedMetricType: s.metric}}})
	return err
}

// forget takes a table that is gone from autoscaling, which would keep its alarms.
func forget(ctx context.Context, client *applicationautoscaling.Client, t store.Table) error {
	for _, s := range scalables(t) {
		_, err := client.DeregisterScalableTarget(ctx, &applicationautoscaling.DeregisterScalableTargetInput{
			ServiceNamespace: types.ServiceNamespaceDynamodb, ResourceId: &s.resource, ScalableDimension: s.dimension})
		if _, none := errors.AsType[*types.ObjectNotFoundException](err); err != nil && !none {
			return fmt.Errorf("table %s is gone, but not its autoscaling of %s, %s: %w", t.Name, s.resource, s.dimension, err)
		}
	}
	return nil
}

// scaler returns a client of Application Auto Scaling with the credentials and the region
// of the DynamoDB client, or nil where there is none: at an endpoint that is not Amazon's,
// unless one was named for it too.
func scaler(client *dynamodb.Client, base string) *applicationautoscaling.Client {
	from := client.Options()
	o := applicationautoscaling.Options{Region: from.Region, Credentials: from.Credentials, HTTPClient: from.HTTPClient,
		Retryer: retry.AddWithErrorCodes(retryer(), "ConcurrentUpdateException")}
	switch {
	case base != "":
		o.BaseEndpoint = &base
	case from.BaseEndpoint != nil && !amazons(*from.BaseEndpoint):
		return nil
	}
	return applicationautoscaling.New(o)
}

// amazons reports whether the base URL is one of Amazon's, such as a VPC endpoint.
func amazons(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := "." + u.Hostname()
	return strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix(host, ".amazonaws.com.cn") || strings.HasSuffix(host, ".api.aws")
}
