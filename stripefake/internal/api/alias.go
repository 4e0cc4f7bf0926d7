package api

import "github.com/duesday/duesday/stripefake/internal/shape"

type (
	object = shape.Object
	form   = shape.Form
)
