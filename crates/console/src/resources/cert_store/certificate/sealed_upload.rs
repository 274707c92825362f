//! An uploaded file before it is stored: sealed into the page that shows its contents, because it contains a private key.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shell::visit::{Visit, one};

/// Purpose of the seal.
const FILE: &str = "console-certificate";
/// How long the sealed file is valid, in ms.
const OFFERED_MS: i64 = 10 * 60_000;

#[derive(Serialize, Deserialize)]
struct Sealed {
    body: Value,
    session: Vec<u8>,
    until: i64,
}

/// The body, sealed for this session.
pub fn seal(visit: &Visit<'_>, body: Value) -> String {
    let sealed = Sealed { body, session: visit.visitor.digest.clone(), until: visit.now.0 + OFFERED_MS };
    let text = serde_json::to_vec(&sealed).unwrap_or_default();
    BASE64_STANDARD.encode(visit.app.context.master.seal(FILE, &text))
}

/// The body in the submitted form; `None` if there is no valid one.
pub fn open(visit: &Visit<'_>) -> Option<Value> {
    let sealed = BASE64_STANDARD.decode(one(&visit.form, "sealed")?).ok()?;
    let text = visit.app.context.master.open(FILE, &sealed)?;
    let sealed: Sealed = serde_json::from_slice(text.expose()).ok()?;
    let is_good = sealed.until > visit.now.0 && sealed.session == visit.visitor.digest;
    is_good.then_some(sealed.body)
}
