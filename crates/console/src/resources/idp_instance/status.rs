//! The status of an identity provider: whether users can sign in through it, and the state of SCIM provisioning.

use chancery_management::idp_instance::IDP_INSTANCE;
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use crate::{
    pages::settings,
    shell::{
        components::{Card, Line},
        directory::{self, operation},
        fields::plain,
        visit::Visit,
    },
};

fn line(tone: &'static str, text: &str, sub: &str, href: Option<&str>) -> Line {
    Line { tone, text: text.into(), sub: sub.into(), href: href.map(str::to_owned), ..Line::default() }
}

/// Whether users can sign in through an identity provider.
pub async fn provider(
    visit: &Visit<'_>,
    key: &str,
    here: &str,
    row: &Value,
) -> Result<Option<Card>, Problem> {
    let Some(op) = visit.may(operation!("GetIdpInstanceHealth")) else { return Ok(None) };
    let health = &visit.perform(Input::of(op, vec![key.to_owned()])).await?.json();
    let words = visit.words;
    let is_set = health["hasConfigurationError"] != json!(true);
    let is_active = row.get("isActive") == Some(&json!(true));
    let at = format!("{here}/settings");
    let mut lines = vec![
        line(
            tone(is_active),
            words.page(if is_active { "provider_active" } else { "provider_inactive" }),
            "",
            None,
        ),
        line(
            tone(is_set),
            words.page(if is_set { "provider_set" } else { "provider_not_set" }),
            "",
            Some(at.as_str()).filter(|_| !is_set),
        ),
    ];
    let instances = directory::of_shape(&IDP_INSTANCE);
    if let Some(instances) = instances.filter(|instances| !is_set && settings::are_offered(visit, instances))
    {
        for setting in settings::settings(visit, instances, key, row).await? {
            let (name, wrong) = (&setting.name, setting.error(visit));
            if !wrong.is_empty() {
                lines.push(line("bad", &words.option(name), &wrong, Some(&format!("{at}#f-{name}"))));
            }
        }
    }
    lines.extend(Box::pin(super::provider::certificates(visit, key, row)).await?);
    let is_operational = health["isOperational"] == json!(true);
    let title = words.page(if is_operational { "provider_works" } else { "provider_broken" });
    Ok(Some(Card {
        title: title.into(),
        kind: "checks",
        tone: tone(is_operational),
        lines,
        ..Card::default()
    }))
}

const fn tone(is_good: bool) -> &'static str {
    if is_good { "good" } else { "bad" }
}

/// The state of SCIM provisioning; `None` if it is not set up.
pub async fn provisioning(visit: &Visit<'_>, key: &str, row: &Value) -> Result<Option<Card>, Problem> {
    let is_of_kind = row.get("idpFactoryType") == Some(&json!("OpenIdConnect"));
    let Some(op) = visit.may(operation!("GetIdpInstanceScim")).filter(|_| is_of_kind) else {
        return Ok(None);
    };
    let scim = &visit.perform(Input::of(op, vec![key.to_owned()])).await?.json();
    if scim["isEnabled"] != json!(true) && scim["tokenId"].is_null() {
        return Ok(None);
    }
    let words = visit.words;
    let state = if !scim["stoppedOn"].is_null() {
        line("bad", words.page("scim_stopped"), "", None)
    } else if scim["isEnabled"] == json!(true) {
        line("good", words.page("scim_on"), "", None)
    } else {
        line("off", words.page("scim_off"), "", None)
    };
    let fact = |wire: &str| Line { text: words.field(wire), sub: plain(&scim[wire]), ..Line::default() };
    let moment = |wire: &str| Line { text: words.field(wire), iso: plain(&scim[wire]), ..Line::default() };
    let mut lines = vec![state, fact("ownedUsers"), fact("ownedGroups")];
    lines.extend(["stoppedOn", "lastUsedOn"].into_iter().filter(|wire| !scim[*wire].is_null()).map(moment));
    Ok(Some(Card { title: "SCIM".into(), kind: "checks", lines, ..Card::default() }))
}
