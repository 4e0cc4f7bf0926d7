package pages

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/duesday/duesday/internal/key"
)

// SignInPath is where a person signs in, with an API key or with the link of duesday open, whose text is
// the query.
const SignInPath = "/sign-in"

// maxForm limits the body of a form, in bytes.
const maxForm = 64 << 10

// cookie returns the name of the session's cookie. It has the port, because cookies of two ports are the same ones.
func (v *visit) cookie() string {
	if v.o.Secure {
		return "__Host-duesday"
	}
	_, port, _ := net.SplitHostPort(v.r.Host)
	return "duesday" + port
}

// enter finds the session. If there is none, it leads to the form, and v.key stays nil. A page that reloads itself
// has refresh in its query, and does not prolong the session.
func (v *visit) enter() error {
	if c, err := v.r.Cookie(v.cookie()); err == nil {
		k, err := v.o.Keys.Session(v.r.Context(), c.Value, !v.r.URL.Query().Has("refresh"))
		if v.key = k; err == nil {
			return nil
		} else if !errors.Is(err, key.ErrRefused) {
			return err
		}
		v.key = nil
	}
	to := SignInPath
	if v.r.Method == http.MethodGet && v.r.URL.Path != "/" {
		to += encode([]string{"next", v.r.URL.RequestURI()})
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther)
	return nil
}

// next returns the page to show after signing in: one of these pages, never one elsewhere.
func next(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n\t") {
		return "/"
	}
	return text
}

// signInForm changes nothing: a link in it is used when the person sends the form.
func (h *Handler) signInForm(w http.ResponseWriter, r *http.Request) {
	v := &visit{Handler: h, w: w, r: r}
	q := r.URL.Query()
	v.render(http.StatusOK, "sign-in", "Sign in", object{"link": q.Get("link"), "next": next(q.Get("next"))})
}

func (h *Handler) signIn(w http.ResponseWriter, r *http.Request) {
	v := &visit{Handler: h, w: w, r: r}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		v.fail(errForm)
		return
	}
	to := next(r.PostForm.Get("next"))
	text, _, err := h.o.Keys.SignIn(r.Context(), strings.TrimSpace(r.PostForm.Get("key")))
	if errors.Is(err, key.ErrRefused) {
		h.o.Log.WarnContext(r.Context(), "pages: somebody could not sign in", "error", err)
		v.render(http.StatusForbidden, "sign-in", "Sign in", object{"refused": true, "next": to})
		return
	}
	if err != nil {
		v.fail(err)
		return
	}
	v.setCookie(text.Reveal(), int(key.Longest.Seconds()))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (v *visit) setCookie(value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: v.cookie(), Value: value, Path: "/", MaxAge: seconds, Secure: v.o.Secure, HttpOnly: true,
		SameSite: http.SameSiteStrictMode})
}

func (v *visit) signOut() error {
	c, err := v.r.Cookie(v.cookie())
	if err == nil {
		err = v.o.Keys.SignOut(v.r.Context(), c.Value)
	}
	if err != nil {
		return err
	}
	v.setCookie("", -1)
	http.Redirect(v.w, v.r, SignInPath, http.StatusSeeOther)
	return nil
}
