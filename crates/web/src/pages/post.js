// The script of the page that answers a client app by a form: it sends the form by itself (Form Post Response Mode 1.0).
"use strict";
document.querySelector("form").submit();
