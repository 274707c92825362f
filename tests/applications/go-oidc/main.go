// A web application with go-oidc and golang.org/x/oauth2, as the examples of go-oidc set it up.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// person is who is signed in: what the program reads, all claims, and the ID token for the sign-out.
type person struct {
	Name    string         `json:"name"`
	Groups  []string       `json:"groups"`
	Claims  map[string]any `json:"claims"`
	idToken string
}

// people are the sessions, by their cookie.
type people struct {
	lock sync.Mutex
	all  map[string]person
}

func (p *people) put(key string, one person) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.all[key] = one
}

func (p *people) get(request *http.Request) (string, person, bool) {
	cookie, err := request.Cookie("go_session")
	if err != nil {
		return "", person{}, false
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	one, found := p.all[cookie.Value]
	return cookie.Value, one, found
}

func (p *people) drop(key string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.all, key)
}

// site is the application.
type site struct {
	address  string
	provider *oidc.Provider
	client   oauth2.Config
	people   people
}

func main() {
	issuer, address := os.Getenv("ISSUER"), os.Getenv("SITE")
	provider, err := oidc.NewProvider(context.Background(), issuer)
	if err != nil {
		log.Fatal(err)
	}
	one := &site{
		address:  address,
		provider: provider,
		client: oauth2.Config{
			ClientID:     os.Getenv("CLIENT_ID"),
			ClientSecret: os.Getenv("CLIENT_SECRET"),
			Endpoint:     provider.Endpoint(),
			RedirectURL:  address + "/callback",
			Scopes:       []string{oidc.ScopeOpenID, "profile", "email"},
		},
		people: people{all: map[string]person{}},
	}
	http.HandleFunc("/", one.inside)
	http.HandleFunc("/callback", one.callback)
	http.HandleFunc("/logout", one.logout)
	http.HandleFunc("/bye", func(answer http.ResponseWriter, _ *http.Request) { _, _ = answer.Write([]byte("Bye")) })
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

func setCookie(answer http.ResponseWriter, name, value string) {
	http.SetCookie(answer, &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true})
}

func (s *site) inside(answer http.ResponseWriter, request *http.Request) {
	if _, one, found := s.people.get(request); found {
		answer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(answer).Encode(one)
		return
	}
	state, nonce := rand.Text(), rand.Text()
	setCookie(answer, "go_state", state)
	setCookie(answer, "go_nonce", nonce)
	http.Redirect(answer, request, s.client.AuthCodeURL(state, oidc.Nonce(nonce)), http.StatusFound)
}

func (s *site) callback(answer http.ResponseWriter, request *http.Request) {
	one, err := s.signIn(request)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	key := rand.Text()
	s.people.put(key, one)
	setCookie(answer, "go_session", key)
	http.Redirect(answer, request, "/", http.StatusFound)
}

func (s *site) logout(answer http.ResponseWriter, request *http.Request) {
	key, one, _ := s.people.get(request)
	s.people.drop(key)
	var known struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := s.provider.Claims(&known); err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	query := url.Values{"id_token_hint": {one.idToken}, "post_logout_redirect_uri": {s.address + "/bye"}}
	http.Redirect(answer, request, known.EndSession+"?"+query.Encode(), http.StatusFound)
}
