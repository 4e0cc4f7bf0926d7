package cloudformation

import (
	"github.com/duesday/duesday/internal/schema"
	"github.com/duesday/duesday/internal/store"
)

type scalableTarget struct {
	ServiceNamespace         string
	ResourceId               substitution
	ScalableDimension        string
	MinCapacity, MaxCapacity int
}

type scalingPolicy struct {
	PolicyName, PolicyType                   string
	ScalingTargetId                          reference
	TargetTrackingScalingPolicyConfiguration tracking
}

type tracking struct {
	TargetValue                   int
	PredefinedMetricSpecification struct{ PredefinedMetricType string }
}

// scaling returns a target and a policy for the reads and for the writes of the table and of
// each of its indexes. No role is named: Application Auto Scaling has its own, linked to the
// service. A target waits for the table, because it refers to it.
func scaling(id string, t *store.Table) map[string]resource {
	list := map[string]resource{}
	add := func(id, resourceID, kind string) {
		for _, of := range []string{"Read", "Write"} {
			target := id + of + "Target"
			list[target] = resource{Type: "AWS::ApplicationAutoScaling::ScalableTarget", Properties: scalableTarget{
				ServiceNamespace: "dynamodb", ResourceId: substitution{resourceID},
				ScalableDimension: "dynamodb:" + kind + ":" + of + "CapacityUnits",
				MinCapacity:       schema.LeastUnits, MaxCapacity: schema.MostUnits}}
			metric := "DynamoDB" + of + "CapacityUtilization"
			policy := scalingPolicy{PolicyName: metric, PolicyType: "TargetTrackingScaling", ScalingTargetId: reference{target}}
			policy.TargetTrackingScalingPolicyConfiguration.TargetValue = schema.TargetUse
			policy.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification.PredefinedMetricType = metric
			list[id+of+"Policy"] = resource{Type: "AWS::ApplicationAutoScaling::ScalingPolicy", Properties: policy}
		}
	}
	add(id, "table/${"+id+"}", "table")
	for _, x := range t.Indexes {
		add(id+"Index"+logicalID(x.Name), "table/${"+id+"}/index/"+x.Name, "index")
	}
	return list
}
