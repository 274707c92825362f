package main

import (
	"errors"
	"net/http"

	"github.com/coreos/go-oidc/v3/oidc"
)

// signIn exchanges the code for tokens and verifies the ID token.
func (s *site) signIn(request *http.Request) (person, error) {
	var one person
	query := request.URL.Query()
	state, err := request.Cookie("go_state")
	if err != nil {
		return one, err
	}
	if query.Get("state") != state.Value {
		return one, errors.New("the state differs: " + query.Encode())
	}
	token, err := s.client.Exchange(request.Context(), query.Get("code"))
	if err != nil {
		return one, err
	}
	raw, found := token.Extra("id_token").(string)
	if !found {
		return one, errors.New("there is no ID token")
	}
	verifier := s.provider.Verifier(&oidc.Config{ClientID: s.client.ClientID})
	idToken, err := verifier.Verify(request.Context(), raw)
	if err != nil {
		return one, err
	}
	nonce, err := request.Cookie("go_nonce")
	if err != nil {
		return one, err
	}
	if idToken.Nonce != nonce.Value {
		return one, errors.New("the nonce differs")
	}
	if err := idToken.Claims(&one); err != nil {
		return one, err
	}
	one.idToken = raw
	return one, idToken.Claims(&one.Claims)
}
