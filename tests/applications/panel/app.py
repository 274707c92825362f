"""A page of Panel, which shows who is signed in."""

import json

import panel as pn

person = pn.state.user_info
told = json.dumps({"name": person.get("name"), "groups": person.get("groups"), "claims": person})
pn.pane.HTML(f"<pre>{told}</pre>").servable()
