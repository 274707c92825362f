//! The rules of a client app.

use chancery_record::{Name, Value, fold};
use chancery_resource::{Findings, Problem, ProposedRow, ProvidedFields, ROOT, Rules, Tx, Violation, Writer};

use super::{ClientApp, ContentEncryption, profile::check_apps};
use crate::{link::crosses_subscriptions, owning_subscription::resolve_subscription, violation::conflict_at};

/// The response types that a client app may be allowed.
pub const RESPONSE_TYPES: [&str; 8] = [
    "code",
    "code id_token",
    "code id_token token",
    "code token",
    "id_token",
    "id_token token",
    "token",
    "none",
];

/// Response types, each once and with its words in the usual order; `None` where one is unknown.
fn response_types(text: &str) -> Option<String> {
    let mut known: Vec<&str> = Vec::new();
    for part in text.split(',') {
        let mut words: Vec<&str> = part.split_whitespace().collect();
        words.sort_unstable();
        let found = RESPONSE_TYPES.iter().find(|kind| kind.split(' ').eq(words.iter().copied()))?;
        if !known.contains(found) {
            known.push(found);
        }
    }
    Some(known.join(","))
}

impl Rules for ClientApp {
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        if let Some(types) = response_types(self.allowed_response_types.as_str())
            && let Ok(types) = Name::new(types)
        {
            self.allowed_response_types = types;
        }
        let usual = Some(ContentEncryption::A128CbcHs256);
        let pairs = [
            (self.id_token_encrypted_response_alg, &mut self.id_token_encrypted_response_enc),
            (self.userinfo_encrypted_response_alg, &mut self.userinfo_encrypted_response_enc),
            (self.introspection_encrypted_response_alg, &mut self.introspection_encrypted_response_enc),
            (self.request_object_encryption_alg, &mut self.request_object_encryption_enc),
        ];
        for (alg, enc) in pairs {
            *enc = enc.or(usual.filter(|_| alg.is_some()));
        }
    }

    fn check(&self, wrong: &mut Findings) {
        if response_types(self.allowed_response_types.as_str()).is_none() {
            let detail = format!("must be some of {}, separated by commas", RESPONSE_TYPES.join(", "));
            wrong.add(Self::ALLOWED_RESPONSE_TYPES, detail);
        }
    }
}

/// Validates client apps against the data.
pub fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let own = ClientApp::SUBSCRIPTION_ID;
    let mut violations = resolve_subscription(writer.context, tx, rows, own, &[], |_| Ok(false))?;
    violations.extend(find_namesakes(rows));
    violations.extend(find_crossing(tx, rows)?);
    violations.extend(check_apps(tx, rows)?);
    Ok(violations)
}

/// Finds rows that would have the name of the installation's own client app, the only one that a token
/// request may name instead of its id.
fn find_namesakes(rows: &[ProposedRow<'_>]) -> Vec<Violation> {
    let is_root = |values: &[Value]| ClientApp::NAME.text(values).is_some_and(|name| fold(name) == ROOT);
    let namesakes = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| is_root(row.values) && !row.was.is_some_and(|was| is_root(&was.values)));
    let refuse =
        |index| conflict_at(index, ClientApp::NAME, "is the name of the installation's own client app");
    namesakes.map(|(index, _)| refuse(index)).collect()
}

/// Finds client apps that have links to other subscriptions and would no longer allow them.
fn find_crossing(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let allows = ClientApp::ALLOW_CROSS_SUBSCRIPTION;
    let mut violations = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let Some(was) = row.was else { continue };
        if was.get(allows)? && !row.get(allows)? && crosses_subscriptions(tx, row.get(ClientApp::ID)?.0)? {
            let detail = "must stay true: the client app is linked to something of another subscription";
            violations.push(conflict_at(index, allows, detail));
        }
    }
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::response_types;

    #[test]
    fn response_types_are_brought_into_order() {
        assert_eq!(response_types("code").as_deref(), Some("code"));
        assert_eq!(response_types(" token  code , code,code").as_deref(), Some("code token,code"));
        assert_eq!(response_types("id_token token").as_deref(), Some("id_token token"));
        for wrong in ["", "code,", "password", "code code"] {
            assert_eq!(response_types(wrong), None, "{wrong}");
        }
    }
}
