package httpapi

import (
	"net/http"

	"github.com/duesday/duesday/internal/secret"
	"github.com/duesday/duesday/internal/tracking"
)

func (s *server) listJobs(w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	return stream(s, w, r, s.o.Backlog.Jobs(r.Context()), 0, func(j tracking.WaitingJob) any {
		j.Error = secret.Clean(j.Error)
		return j
	})
}

func (s *server) replayJob(w http.ResponseWriter, r *http.Request) error {
	var form jobForm
	if err := readForm(w, r, &form); err != nil {
		return err
	}
	if form.ID == "" {
		return &tracking.FieldError{Field: "id",
			Problem: "want the id of a job, such as fulfil/… and the id of its purchase"}
	}
	if err := s.o.Backlog.ReplayJob(r.Context(), form.ID); err != nil {
		return err
	}
	send(w, http.StatusOK, doneForm{true})
	return nil
}
