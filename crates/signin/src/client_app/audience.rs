//! The audience of a person's token (RFC 8707).

use std::collections::BTreeSet;

use chancery_oauth::{ErrorCode, ProtocolError, STANDARD_SCOPES, is_same_resource, normalize_resource};
use chancery_record::Value;
use chancery_resource::{PLATFORM, Sql, StoreError, Tx};
use chancery_store::selectable;

use super::Application;

const INVALID_TARGET: ProtocolError = ProtocolError::new(
    ErrorCode::InvalidTarget,
    "A resource is none that the client app may ask for, or the platform's beside others.",
);

/// The audience of a person's token: the requested resources, else those of the client app. The platform's own are
/// never included by default: otherwise every client app to which an administrator signs in would have the
/// administrator's rights.
///
/// # Errors
/// Fails when the database does. The inner error is `invalid_target`.
pub fn audience(
    tx: &mut Tx<'_>,
    application: &Application,
    requested: &[String],
) -> Result<Result<Vec<String>, ProtocolError>, StoreError> {
    let is_platform = |name: &String| PLATFORM.contains(&name.as_str());
    if requested.is_empty() {
        let own: Vec<String> =
            application.resources.iter().filter(|name| !is_platform(name)).cloned().collect();
        return Ok(Ok(if own.is_empty() { vec![application.id.to_string()] } else { own }));
    }
    let requested: Vec<String> = requested.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect();
    let is_own = |name: &&String| application.resources.contains(name);
    let foreign: Vec<&String> = requested.iter().filter(|name| !is_own(name)).collect();
    let fits = if requested.iter().any(is_platform) {
        foreign.is_empty() && requested.iter().all(is_platform)
    } else {
        foreign.is_empty()
            || (!application.filters_resources && are_of_subscription(tx, application, &foreign)?)
    };
    Ok(if fits { Ok(requested) } else { Err(INVALID_TARGET) })
}

/// Whether each of these resources belongs to another client app of the same subscription.
fn are_of_subscription(
    tx: &mut Tx<'_>,
    application: &Application,
    names: &[&String],
) -> Result<bool, StoreError> {
    let mut sql = Sql::new(
        "SELECT DISTINCT r.key FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id \
         JOIN resource_owner o ON o.key = r.key AND o.subscription_id = a.subscription_id \
         WHERE a.subscription_id = ",
    )
    .bind(application.subscription);
    sql.add(" AND r.key IN ");
    sql.add_list(names.iter().map(|name| Value::Text((*name).clone())));
    let mut count = 0;
    tx.query(&sql.text, &sql.parameters, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count == names.len())
}

/// Resources in their registered spelling. An unregistered one is unchanged.
pub fn as_registered(tx: &mut Tx<'_>, requested: &[String]) -> Result<Vec<String>, StoreError> {
    if requested.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new("SELECT key FROM resource_owner WHERE key IN ");
    sql.add_list(requested.iter().map(|name| Value::Text(name.clone())));
    sql.add(" OR normal_key IN ");
    sql.add_list(requested.iter().map(|name| Value::Text(normalize_resource(name))));
    sql.add(" ORDER BY key");
    let mut known = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        known.push(row.text(0)?.to_owned());
        Ok(())
    })?;
    let registered = |name: &String| {
        let same = || known.iter().find(|known| is_same_resource(known, name));
        if known.contains(name) { name.clone() } else { same().unwrap_or(name).clone() }
    };
    Ok(requested.iter().map(registered).collect())
}

/// The display data of a resource.
pub struct NamedResource {
    /// Its name in requests.
    pub key: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
}

selectable! {
    /// A resource of a client app.
    struct ResourceRow<'r> from "FROM client_app_resource r JOIN client_app a ON a.id = r.client_app_id \
        JOIN resource_owner o ON o.key = r.key AND o.subscription_id = a.subscription_id WHERE r.key IN " {
        key: &'r str = "r.key",
        name: &'r str = "r.name",
        description: Option<&'r str> = "r.description",
    }
}

/// The requested resources with their names: those of the client app itself, else of a client app of the owner's
/// subscription.
pub fn named_resources(
    tx: &mut Tx<'_>,
    application: &Application,
    requested: &[String],
) -> Result<Vec<NamedResource>, StoreError> {
    let is_other = |word: &String| {
        let word = word.as_str();
        // pages name the platform's resources themselves: no client app may give them a harmless name
        STANDARD_SCOPES.contains(&word)
            || PLATFORM.contains(&word)
            || application.scopes.iter().any(|own| own.key == word)
    };
    let mut keys = requested.iter().filter(|word| !is_other(word)).peekable();
    if keys.peek().is_none() {
        return Ok(Vec::new());
    }
    let mut sql = Sql::new(ResourceRow::SELECT);
    sql.add_list(keys.map(|key| Value::Text(key.clone())));
    sql.add(" ORDER BY CASE WHEN r.client_app_id = ");
    let sql = sql.bind(application.id).push(" THEN 0 ELSE 1 END, r.rid");
    let mut named: Vec<NamedResource> = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        let ResourceRow { key, name, description } = ResourceRow::read(row)?;
        if !named.iter().any(|known| known.key == key) {
            named.push(NamedResource {
                key: key.to_owned(),
                name: name.to_owned(),
                description: description.map(str::to_owned),
            });
        }
        Ok(())
    })?;
    Ok(named)
}

/// The granted resources that a token request selects: all of them, or a part (RFC 8707, section 2.2).
///
/// # Errors
/// `invalid_target`
pub fn narrowed(granted: Vec<String>, requested: &[String]) -> Result<Vec<String>, ProtocolError> {
    let is_in = |name: &String, list: &[String]| list.iter().any(|one| is_same_resource(one, name));
    if requested.iter().any(|name| !is_in(name, &granted)) {
        return Err(INVALID_TARGET);
    }
    Ok(if requested.is_empty() {
        granted
    } else {
        granted.into_iter().filter(|name| is_in(name, requested)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::narrowed;

    #[test]
    fn a_token_request_cannot_extend_the_granted_resources() {
        let granted = || vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(narrowed(granted(), &[]).unwrap(), granted());
        assert_eq!(narrowed(granted(), &["b".to_owned()]).unwrap(), ["b"]);
        let mcp = || vec!["https://mcp.example".to_owned()];
        assert_eq!(narrowed(mcp(), &["https://MCP.example:443/".to_owned()]).unwrap(), mcp());
        assert!(narrowed(granted(), &["b".to_owned(), "c".to_owned()]).is_err());
    }
}
