package cause_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duesday/duesday/internal/billing"
	"github.com/duesday/duesday/internal/delivery"
	"github.com/duesday/duesday/internal/delivery/cause"
	"github.com/duesday/duesday/internal/store"
)
