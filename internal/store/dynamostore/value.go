package dynamostore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/duesday/duesday/internal/store"
)

// tokenName is the attribute with the token of an item's last write.
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

// decodeItem returns the item without its token. An attribute with a set in it is left out too, and
// the error says so. Iterations and conditions use such an item; Get returns the error and no item.
func decodeItem(t *store.Table, m attributes) (store.Item, error) {
	it, err := decodeMap(m)
	it.Remove(tokenName)
	if err != nil {
		key := t.KeyOf(it)
		err = fmt.Errorf("table %s, item %s/%s: attribute %w", t.Name, key.PK, key.SK, err)
	}
	return it, err
}

// decodeMap returns what can be represented, and the first error of the rest. Nulls are left out of
// items, maps and lists: they read as absent.
func decodeMap(m attributes) (it store.Item, first error) {
	it = make(store.Item, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v, err := decode(m[name])
		switch {
		case err != nil && first == nil:
			first = fmt.Errorf("%s: %w", name, err)
		case err == nil && !v.IsZero():
			it = append(it, store.Attribute{Name: name, Value: v})
		}
	}
	return it, first
}

// decode returns the zero Value for null.
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
		if err != nil {
			return store.Value{}, err
		}
		return store.M(m), nil
	case *types.AttributeValueMemberL:
		return decodeList(av.Value)
	case *types.AttributeValueMemberNULL:
		return store.Value{}, nil
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return store.Value{}, fmt.Errorf("%w: a set, which another program must have written", store.ErrFormat)
	}
	return store.Value{}, fmt.Errorf("%w: a value of unknown type %T", store.ErrFormat, av)
}

func decodeList(l []types.AttributeValue) (store.Value, error) {
	list := make([]store.Value, 0, len(l))
	for i, e := range l {
		v, err := decode(e)
		if err != nil {
			return store.Value{}, fmt.Errorf("element %d: %w", i, err)
		}
		if !v.IsZero() {
			list = append(list, v)
		}
	}
	return store.L(list...), nil
}
