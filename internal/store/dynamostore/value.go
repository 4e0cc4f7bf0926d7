package dynamostore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// tokenName is the attribute that holds the token of an item's last write.
const tokenName = "_token"

type attributes = map[string]types.AttributeValue

func encodeItem(it store.Item) attributes {
	m := make(attributes, len(it)+1) // a token may come
	for _, a := range it {
		m[a.Name] = encode(a.Value)
	}
	return m
}

func encodeKey(t *store.Table, k store.Key) attributes {
	m := attributes{t.PartitionKey: &types.AttributeValueMemberS{Value: k.PK}}
	if t.SortKey != "" {
		m[t.SortKey] = &types.AttributeValueMemberS{Value: k.SK}
	}
	return m
}

func encode(v store.Value) types.AttributeValue {
	switch v.Kind() {
	case store.KindNumber:
		return &types.AttributeValueMemberN{Value: v.Num()}
	case store.KindBool:
		return &types.AttributeValueMemberBOOL{Value: v.Bool()}
	case store.KindBinary:
		// The SDK writes a nil slice as no value at all.
		return &types.AttributeValueMemberB{Value: append([]byte{}, v.Raw()...)}
	case store.KindMap:
		return &types.AttributeValueMemberM{Value: encodeItem(v.Map())}
	case store.KindList:
		l := make([]types.AttributeValue, len(v.List()))
		for i, e := range v.List() {
			l[i] = encode(e)
		}
		return &types.AttributeValueMemberL{Value: l}
	}
	return &types.AttributeValueMemberS{Value: v.Str()}
}

// decodeItem returns the item without its token. An attribute of a kind that the
// contract does not have (a set, null) is store.ErrFormat: another program wrote it.
func decodeItem(m attributes) (store.Item, error) {
	it, err := decodeMap(m)
	if err != nil {
		return nil, err
	}
	it.Remove(tokenName)
	return it, nil
}

func decodeMap(m attributes) (store.Item, error) {
	it := make(store.Item, 0, len(m))
	for name, av := range m {
		v, err := decode(av)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		it = append(it, store.Attribute{Name: name, Value: v})
	}
	slices.SortFunc(it, func(a, b store.Attribute) int { return strings.Compare(a.Name, b.Name) })
	return it, nil
}

func decode(av types.AttributeValue) (store.Value, error) {
	switch av := av.(type) {
	case *types.AttributeValueMemberS:
		return store.S(av.Value), nil
	case *types.AttributeValueMemberN:
		return store.Number(av.Value)
	case *types.AttributeValueMemberBOOL:
		return store.Bool(av.Value), nil
	case *types.AttributeValueMemberB:
		return store.B(av.Value), nil
	case *types.AttributeValueMemberM:
		m, err := decodeMap(av.Value)
		return store.M(m), err
	case *types.AttributeValueMemberL:
		l := make([]store.Value, len(av.Value))
		for i, e := range av.Value {
			v, err := decode(e)
			if err != nil {
				return store.Value{}, err
			}
			l[i] = v
		}
		return store.L(l...), nil
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS, *types.AttributeValueMemberNULL:
		return store.Value{}, fmt.Errorf("%w: an attribute that is a set or null", store.ErrFormat)
	}
	return store.Value{}, fmt.Errorf("%w: an attribute of unknown type %T", store.ErrFormat, av)
}
