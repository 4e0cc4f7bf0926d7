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
	case store.KindNull:
		return &types.AttributeValueMemberNULL{Value: true}
	case store.KindSet:
		return encodeSet(v.Elements())
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

func encodeSet(set []store.Value) types.AttributeValue {
	var texts []string
	var binaries [][]byte
	for _, e := range set {
		texts, binaries = append(texts, e.Str()+e.Num()), append(binaries, append([]byte{}, e.Raw()...))
	}
	switch set[0].Kind() {
	case store.KindNumber:
		return &types.AttributeValueMemberNS{Value: texts}
	case store.KindBinary:
		return &types.AttributeValueMemberBS{Value: binaries}
	}
	return &types.AttributeValueMemberSS{Value: texts}
}

// decodeItem returns the item without its token and its nulls, which read as absent. An attribute of a
// type unknown to this program is left out too, and the error says so. Iterations and conditions use
// such an item; Get returns the error and no item.
func decodeItem(t *store.Table, m attributes) (store.Item, error) {
	it, err := decodeMap(m)
	it.Remove(tokenName)
	it = slices.DeleteFunc(it, func(a store.Attribute) bool { return a.Value.IsZero() })
	if err != nil {
		key := t.KeyOf(it)
		err = fmt.Errorf("table %s, item %s/%s: attribute %w", t.Name, key.PK, key.SK, err)
	}
	return it, err
}

// decodeMap returns what can be represented, and the first error of the rest.
func decodeMap(m attributes) (it store.Item, first error) {
	it = make(store.Item, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v, err := decode(m[name])
		switch {
		case err != nil && first == nil:
			first = fmt.Errorf("%s: %w", name, err)
		case err == nil:
			it = append(it, store.Attribute{Name: name, Value: v})
		}
	}
	return it, first
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
		if err != nil {
			return store.Value{}, err
		}
		return store.M(m), nil
	case *types.AttributeValueMemberL:
		l, err := decodeEach(av.Value, decode)
		return store.L(l...), err
	case *types.AttributeValueMemberNULL:
		return store.Null(), nil
	case *types.AttributeValueMemberSS:
		return decodeSet(av.Value, func(s string) (store.Value, error) { return store.S(s), nil })
	case *types.AttributeValueMemberNS:
		return decodeSet(av.Value, store.Number)
	case *types.AttributeValueMemberBS:
		return decodeSet(av.Value, func(b []byte) (store.Value, error) { return store.B(b), nil })
	}
	return store.Value{}, fmt.Errorf("%w: a value of unknown type %T", store.ErrFormat, av)
}

func decodeSet[T any](set []T, element func(T) (store.Value, error)) (store.Value, error) {
	list, err := decodeEach(set, element)
	if err != nil {
		return store.Value{}, err
	}
	return store.Set(list...)
}

func decodeEach[T any](l []T, decode func(T) (store.Value, error)) ([]store.Value, error) {
	list := make([]store.Value, len(l))
	for i, e := range l {
		var err error
		if list[i], err = decode(e); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return list, nil
}
