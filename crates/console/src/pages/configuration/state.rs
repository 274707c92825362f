//! Reads the state of the server and the entered documents, and compares them.

use std::collections::BTreeMap;

use chancery_configuration::{Document, Memory, Plan, PlanInput, State, plan, read_documents, secret_of};
use chancery_record::{FieldError, read_json};
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Deserializer, Value};

use crate::{
    pages::form::fresh_id,
    shell::{
        configuration_kinds::{KINDS, list},
        visit::{Visit, one},
    },
};

/// The entered documents, compared with the state of the server.
#[derive(Default)]
pub struct Compared {
    /// The documents, without secrets.
    pub documents: Vec<Document>,
    /// The changes; empty if a document is invalid.
    pub plan: Plan,
    /// The errors in the documents, by pointers that start with their index.
    pub problem: Option<Problem>,
    /// The secrets that stay unchanged, since pages submit none: kinds, members and names.
    pub secrets: Vec<String>,
    /// The kinds that the user may not read.
    pub unread: Vec<&'static str>,
}

/// The rows of all kinds that the user may read, and the other kinds.
pub async fn read(visit: &Visit<'_>) -> Result<(State<'static>, Vec<&'static str>), Problem> {
    let (mut state, mut unread) = (State::new(&KINDS), Vec::new());
    for (index, kind) in KINDS.iter().enumerate() {
        let Some(op) = visit.may(list(kind)) else {
            unread.push(kind.name);
            continue;
        };
        let rows = visit.perform(Input::of(op, Vec::new())).await?.json();
        state.set(index, rows).map_err(chancery_store::Error::Internal)?;
    }
    Ok((state, unread))
}

/// Reads and compares the entered documents.
///
/// # Errors
/// The text is no JSON.
pub async fn compare(visit: &Visit<'_>) -> Result<Compared, Problem> {
    let text = one(&visit.form, "text").unwrap_or_default();
    let wrong = |problems: Vec<chancery_configuration::Problem>| {
        let field_error = |one: chancery_configuration::Problem| {
            let number = one.document.map_or_else(String::new, |number| format!("/{number}"));
            FieldError::new(format!("{number}{}", one.pointer), visit.words.error_text(&one.detail))
        };
        let mut problem = Problem::wrong(problems.into_iter().map(field_error).collect::<Vec<_>>());
        visit.words.page("configuration_refused").clone_into(&mut problem.detail);
        problem
    };
    let mut compared = Compared::default();
    match documents(visit, text)? {
        Ok(documents) => compared.documents = documents,
        Err(problems) => return Ok(Compared { problem: Some(wrong(problems)), ..compared }),
    }
    compared.secrets = take_secrets(&mut compared.documents);
    let (state, unread) = read(visit).await?;
    compared.unread = unread;
    let known = PlanInput { memory: &Memory::default(), secrets: &BTreeMap::new(), prune: false };
    match plan(&state, &compared.documents, &known, &mut fresh_id) {
        Ok(plan) => compared.plan = plan,
        Err(problems) => compared.problem = Some(wrong(problems)),
    }
    Ok(compared)
}

type Read = Result<Vec<Document>, Vec<chancery_configuration::Problem>>;

/// The documents of a text: arrays and single documents, concatenated.
fn documents(visit: &Visit<'_>, text: &str) -> Result<Read, Problem> {
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    let mut count = 0;
    // some editors write a byte order mark
    let text = text.trim_start_matches('\u{feff}');
    let mut all = Deserializer::from_str(text).into_iter::<Value>();
    let mut begin = 0;
    while let Some(json) = all.next() {
        let json = json.map_err(|error| {
            let said = visit.words.page("configuration_no_json").replace("{line}", &error.line().to_string());
            Problem::invalid(said.replace("{column}", &error.column().to_string()))
        })?;
        // a duplicate member would be ignored silently
        let end = all.byte_offset();
        read_json(text.get(begin..end).unwrap_or_default().as_bytes())
            .map_err(|wrong| Problem::invalid(wrong.0))?;
        begin = end;
        let length = json.as_array().map_or(1, Vec::len);
        match read_documents(json, count) {
            Ok(read) => documents.extend(read),
            Err(invalid) => problems.extend(invalid),
        }
        count += length;
    }
    if count == 0 {
        return Err(Problem::invalid(visit.words.page("configuration_empty")));
    }
    Ok(if problems.is_empty() { Ok(documents) } else { Err(problems) })
}

/// Removes members that refer to secrets from documents.
fn take_secrets(documents: &mut [Document]) -> Vec<String> {
    let mut removed = Vec::new();
    for document in documents {
        let kind = &document.kind;
        document.members.retain(|member, value| {
            let secret = secret_of(value);
            removed.extend(secret.map(|name| format!("{kind}.{member} ({name})")));
            secret.is_none()
        });
    }
    removed
}

#[cfg(test)]
mod tests {
    use chancery_configuration::Document;
    use serde_json::json;

    use super::{KINDS, list, take_secrets};

    #[test]
    fn every_kind_can_be_listed() {
        let missing: Vec<_> =
            KINDS.iter().filter(|kind| list(kind).is_none()).map(|kind| kind.name).collect();
        assert!(missing.is_empty() && KINDS.len() > 10, "{missing:?}");
    }

    #[test]
    fn references_to_secrets_are_removed() {
        let members = json!({ "name": "Mail", "value": { "secret": "MAIL" } });
        let mut documents =
            [Document { kind: "Option".into(), members: members.as_object().unwrap().clone() }];
        assert_eq!(take_secrets(&mut documents), ["Option.value (MAIL)"]);
        assert_eq!(json!(documents[0].members), json!({ "name": "Mail" }));
    }
}
