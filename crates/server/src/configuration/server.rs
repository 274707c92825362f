//! The server that is configured, by its public interface.

use std::{
    env,
    io::{Write as _, stderr},
    path::PathBuf,
};

use chancery_configuration::{Call, Change, Kind, Problem, State};
use chancery_fetch::{Limits, Networks, Policy, PostBody, send_request};
use chancery_management::SERVICE;
use chancery_record::Secret;
use http::Method;
use serde_json::Value;

use super::folder::Folder;
use crate::{
    config::secrets,
    login::{access_token, plain},
    start_error::BoxError,
};

/// The bounds of each answer.
const LIMITS: Limits = Limits { bytes: 256 * 1024 * 1024, seconds: 300 };

/// A server, and the token of the caller.
pub struct ManagedServer {
    /// Its URL.
    pub url: String,
    token: Secret,
    policy: Policy,
}

/// The token of `$CHANCERY_TOKEN`, of the file that `$CHANCERY_TOKEN_FILE` names, or of the credential `token`.
fn given_token() -> Result<Option<String>, BoxError> {
    let given = env::var("CHANCERY_TOKEN").ok().map(|given| given.trim().to_owned());
    let given = given.filter(|given| !given.is_empty());
    let file = env::var_os("CHANCERY_TOKEN_FILE").filter(|file| !file.is_empty()).map(PathBuf::from);
    let token = secrets::text("token", given, file, secrets::credentials().as_deref());
    Ok(token?)
}

/// A failed call.
pub struct RequestError {
    status: u16,
    detail: String,
    /// The errors of the body, with pointers in it.
    errors: Vec<(String, String)>,
}

impl ManagedServer {
    /// The server at a URL: anywhere by https, on this machine without, too.
    pub fn open(url: &str) -> Result<Self, BoxError> {
        // neither a token nor a URL has white space: values that come from files end in a line end
        let url = url.trim();
        let token = match given_token()? {
            Some(given) => Secret::new(given),
            None => access_token(url).map_err(|why| format!("{why}, or set CHANCERY_TOKEN"))?,
        };
        let policy = Policy { networks: Networks::all(), plain_loopback: true, roots: Vec::new() };
        Ok(Self { url: url.trim_end_matches('/').to_owned(), token, policy })
    }

    /// The rows of all kinds that the caller may read.
    pub async fn read<'a>(&self, kinds: &'a [Kind]) -> Result<State<'a>, BoxError> {
        let mut state = State::new(kinds);
        for (index, kind) in kinds.iter().enumerate() {
            match self.list(kind).await {
                Ok(list) => state.set(index, list)?,
                Err(refusal) if refusal.status == 403 => {
                    let _ = writeln!(stderr(), "{} is left out: you may not read it", kind.name);
                }
                Err(refusal) => return Err(format!("{}: {}", kind.name, plain(&refusal.detail)).into()),
            }
        }
        if (0..kinds.len()).any(|index| state.is_known(index)) {
            Ok(state)
        } else {
            Err("you may read nothing of the configuration: a role such as SubscriptionAdmin is needed"
                .into())
        }
    }

    /// The rows of a kind.
    pub async fn list(&self, kind: &Kind) -> Result<Value, RequestError> {
        let body = PostBody { method: Method::GET, ..PostBody::json(String::new()) };
        self.request(kind.path, body).await
    }

    /// Makes a call, or tries it without changing anything.
    pub async fn send(&self, call: &Call, is_trial: bool) -> Result<Value, RequestError> {
        let method = Method::from_bytes(call.method.as_bytes()).unwrap_or(Method::POST);
        let body = PostBody { method, ..PostBody::json(call.body.to_string()) };
        let path = if is_trial { format!("{}?dryRun=true", call.path) } else { call.path.clone() };
        self.request(&path, body).await
    }

    async fn request(&self, path: &str, body: PostBody) -> Result<Value, RequestError> {
        let url = format!("{}{}{path}", self.url, SERVICE.base);
        let body = PostBody { bearer: Some(self.token.clone()), reads_error_body: true, ..body };
        let failed = |why: String| RequestError { status: 0, detail: why, errors: Vec::new() };
        let answer = send_request(&url, body, LIMITS, &self.policy).await;
        let (status, bytes) = answer.map_err(|why| failed(format!("{url}: {why}")))?;
        let json: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if (200..300).contains(&status) {
            return Ok(json);
        }
        let text = |value: &Value, name: &str| {
            value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let errors = json.get("errors").and_then(Value::as_array).into_iter().flatten();
        let errors = errors.map(|error| (text(error, "pointer"), text(error, "detail"))).collect();
        let detail = match (status, text(&json, "detail")) {
            (401, _) => "the token is not accepted".to_owned(),
            (_, detail) if detail.is_empty() => format!("{url} answered {status}"),
            (_, detail) => detail,
        };
        Err(RequestError { status, detail, errors })
    }
}

impl RequestError {
    /// Whether nothing was done for certain.
    pub const fn is_final(&self) -> bool {
        matches!(self.status, 400..500)
    }

    /// Describes the error for people: of a batch each element by its document.
    pub fn describe(&self, kind: &Kind, changes: &[Change], call: &Call, folder: &Folder) -> String {
        let mut lines = vec![format!("{}: {}", kind.name, self.detail)];
        for (pointer, detail) in &self.errors {
            let (index, rest) = pointer
                .trim_start_matches('/')
                .split_once('/')
                .unwrap_or((pointer.trim_start_matches('/'), ""));
            let change = index.parse().ok().and_then(|index: usize| changes.get(*call.of.get(index)?));
            lines.push(match change.and_then(|change| change.document) {
                Some(number) => {
                    folder.describe(&Problem::at(number, &format!("/members/{rest}"), detail.as_str()))
                }
                None => format!("{pointer}: {detail}"),
            });
        }
        if self.detail.contains("oncurrency")
            || self.errors.iter().any(|(at, _)| at.ends_with("concurrencyToken"))
        {
            lines.push("somebody changed it meanwhile: plan again".to_owned());
        }
        let lines: Vec<String> = lines.iter().map(|line| plain(line)).collect();
        lines.join("\nchancery: ")
    }
}
