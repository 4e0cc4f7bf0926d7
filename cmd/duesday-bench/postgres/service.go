package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tables has what the requests and a day of charges need, and the indexes that daily jobs and searches need.
const tables = `
CREATE TABLE api_key (hash bytea PRIMARY KEY);
CREATE TABLE idempotency (key text PRIMARY KEY, request bytea NOT NULL, object text NOT NULL);
CREATE TABLE account (id text PRIMARY KEY, email text NOT NULL, created_at timestamptz NOT NULL);
CREATE INDEX ON account (email);
CREATE TABLE subscription (account text REFERENCES account, id text, sku text NOT NULL, status text NOT NULL,
	amount bigint NOT NULL, currency text NOT NULL, payment_day int NOT NULL, period int NOT NULL,
	next_payment_date date, next_reminder_date date, version int NOT NULL, created_at timestamptz NOT NULL,
	open_key text, opened_at timestamptz, PRIMARY KEY (account, id));
CREATE INDEX ON subscription (next_payment_date, account, id);
CREATE INDEX ON subscription (next_reminder_date);
CREATE INDEX ON subscription (status, sku);
CREATE TABLE period (account text, subscription text, number int, state text NOT NULL, due_date date NOT NULL,
	charge text, processed_at timestamptz, PRIMARY KEY (account, subscription, number));
CREATE TABLE mail (id bigserial PRIMARY KEY, account text NOT NULL, subscription text NOT NULL, period int NOT NULL,
	template text NOT NULL, created_at timestamptz NOT NULL)`

// book loads subscriptions with one paid period each.
const book = `
INSERT INTO account SELECT 'a' || n, 'a' || n || '@example.com', now() FROM generate_series(0, $1 - 1) n;
INSERT INTO subscription SELECT 'a' || n, 'gym', 'GYM', 'active', 3900, 'GBP', 15, 1, current_date + 30, current_date + 23, 2,
	now() FROM generate_series(0, $1 - 1) n;
INSERT INTO period SELECT 'a' || n, 'gym', 0, 'paid', current_date, 'pi_sandbox_' || n, now() FROM generate_series(0, $1 - 1) n`

// A service does the two requests in a usual way: net/http, encoding/json, and one transaction.
type service struct{ db *pgxpool.Pool }

func serveService(ctx context.Context, l net.Listener, dsn string) error {
	db, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	s := &service{db}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/accounts/{account}/subscriptions", s.keyed(s.create))
	mux.HandleFunc("GET /v1/accounts/{account}/subscriptions/{subscription}/periods/{period}", s.keyed(s.read))
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}

func (s *service) keyed(do http.HandlerFunc) http.HandlerFunc {
	want := sha256.Sum256([]byte(apiKey)) // in memory, as Duesday's
	return func(w http.ResponseWriter, r *http.Request) {
		if sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))) != want {
			http.Error(w, "the API key is missing or not valid", http.StatusUnauthorized)
			return
		}
		do(w, r)
	}
}

type subscription struct {
	Account      string    `json:"account"`
	ID           string    `json:"id"`
	SKU          string    `json:"sku"`
	Status       string    `json:"status"`
	Email        string    `json:"email,omitempty"`
	Amount       int64     `json:"amount"`
	Currency     string    `json:"currency"`
	PaymentDay   int       `json:"payment_day"`
	Period       int       `json:"period"`
	NextPayment  time.Time `json:"next_payment_date"`
	NextReminder time.Time `json:"next_reminder_date"`
	Version      int       `json:"version"`
	Created      time.Time `json:"created_at"`
	Last         *period   `json:"last,omitempty"`
}

type period struct {
	Number    int       `json:"period"`
	State     string    `json:"state"`
	Due       time.Time `json:"due_date"`
	Charge    string    `json:"charge"`
	Processed time.Time `json:"processed_at"`
}

// create stores account, subscription and idempotency key in one transaction, with one round trip.
func (s *service) create(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	var body bytes.Buffer
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, 256<<10))
	x := subscription{}
	in := json.NewDecoder(bytes.NewReader(body.Bytes()))
	in.DisallowUnknownFields()
	if err = errors.Join(err, in.Decode(&x)); err != nil || key == "" || x.ID == "" || x.SKU == "" || x.Amount <= 0 ||
		x.PaymentDay < 1 || x.PaymentDay > 31 {
		http.Error(w, "a field is wrong", http.StatusUnprocessableEntity)
		return
	}
	now := time.Now().UTC()
	x.Account, x.Status, x.Version, x.Created = r.PathValue("account"), "active", 1, now
	x.NextPayment = time.Date(now.Year(), now.Month()+1, x.PaymentDay, 0, 0, 0, 0, time.UTC)
	x.NextReminder = x.NextPayment.AddDate(0, 0, -7)
	request := sha256.Sum256(append([]byte(r.Method+" "+r.URL.Path+"\n"), body.Bytes()...))
	batch := new(pgx.Batch) // without BEGIN, a batch is one transaction
	batch.Queue("INSERT INTO idempotency VALUES ($1, $2, $3)", key, request[:], x.Account+"/"+x.ID)
	batch.Queue("INSERT INTO account VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", x.Account, x.Email, now)
	batch.Queue("INSERT INTO subscription VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $10, $11)", x.Account, x.ID, x.SKU,
		x.Status, x.Amount, x.Currency, x.PaymentDay, x.NextPayment, x.NextReminder, x.Version, now)
	status := http.StatusCreated
	if err = s.db.SendBatch(r.Context(), batch).Close(); err != nil {
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "23505" { // the key or the subscription exists
			status, err = s.again(r.Context(), key, request[:])
		}
	}
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	answer(w, status, x)
}

// again returns 200 if the key belongs to the request, else 422.
func (s *service) again(ctx context.Context, key string, request []byte) (int, error) {
	var before []byte
	err := s.db.QueryRow(ctx, "SELECT request FROM idempotency WHERE key = $1", key).Scan(&before)
	if err == nil && bytes.Equal(before, request) {
		return http.StatusOK, nil
	}
	return http.StatusUnprocessableEntity, err
}

func (s *service) read(w http.ResponseWriter, r *http.Request) {
	x, p := subscription{Account: r.PathValue("account"), ID: r.PathValue("subscription")}, period{}
	err := s.db.QueryRow(r.Context(), `SELECT s.sku, s.status, s.amount, s.currency, s.payment_day, s.period, s.next_payment_date,
		s.next_reminder_date, s.version, s.created_at, p.number, p.state, p.due_date, p.charge, p.processed_at
		FROM subscription s JOIN period p ON p.account = s.account AND p.subscription = s.id
		WHERE s.account = $1 AND s.id = $2 AND p.number = $3`, x.Account, x.ID, r.PathValue("period")).Scan(&x.SKU, &x.Status,
		&x.Amount, &x.Currency, &x.PaymentDay, &x.Period, &x.NextPayment, &x.NextReminder, &x.Version, &x.Created, &p.Number,
		&p.State, &p.Due, &p.Charge, &p.Processed)
	if err != nil {
		http.Error(w, "there is no such subscription", http.StatusNotFound)
		return
	}
	x.Last = &p
	answer(w, http.StatusOK, x)
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
