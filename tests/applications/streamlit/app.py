"""A page of Streamlit, as its documentation shows who is signed in."""

import json

import streamlit as st

if not st.user.is_logged_in:
    st.button("Sign in", on_click=st.login)
    st.stop()
person = st.user.to_dict()
st.button("Sign out", on_click=st.logout)
st.text(json.dumps({"name": person.get("name"), "groups": person.get("groups"), "claims": person}))
