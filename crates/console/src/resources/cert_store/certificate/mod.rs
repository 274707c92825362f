//! The page of a certificate: its purpose, and its successor.

mod sealed_upload;
mod upload;

use chancery_management::cert_store::CERT_STORE;
use chancery_record::{Timestamp, parse_timestamp};
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use crate::shell::{
    components::{Card, Line},
    directory::{self, Resource, encoded, title_of},
    fields::plain,
    presentation::Item,
    visit::Visit,
};

pub use self::upload::{run, show_form};

/// Maximum number of certificates that are searched for a successor.
const MAX_SEARCHED: &str = "200";
/// The types of certificates with which this server signs.
const SIGNING: [&str; 3] = ["Default", "OidcTokenSigning", "AuditTrailSigning"];

/// The end of validity.
fn end(row: &Value) -> Option<Timestamp> {
    row["validTo"].as_str().and_then(parse_timestamp)
}

/// The possible successors of a signing certificate, by precedence: conditions on a row.
fn successors(row: &Value) -> Vec<Vec<(&'static str, Value)>> {
    let of = |kind: &str| ("certType", json!(kind));
    let default = vec![of("Default")];
    match row["certType"].as_str() {
        Some("OidcTokenSigning") => {
            let tenant = vec![of("OidcTokenSigning"), ("applyToTenantId", row["applyToTenantId"].clone())];
            let owner = if row["applyToSubscriptionId"].is_null() {
                "subscriptionId"
            } else {
                "applyToSubscriptionId"
            };
            let all = vec![of("OidcTokenSigning"), ("applyToSubscriptionId", row[owner].clone())];
            let first = (!row["applyToTenantId"].is_null()).then_some(tenant);
            first.into_iter().chain([all, default]).collect()
        }
        Some("AuditTrailSigning") => vec![vec![of("AuditTrailSigning")], default],
        _ => vec![default],
    }
}

/// The certificates with the same purpose that are valid longer, the longest first.
async fn outliving(
    visit: &Visit<'_>,
    resource: &'static Resource,
    row: &Value,
) -> Result<Vec<Value>, Problem> {
    let Some(op) = visit.may(resource.list) else { return Ok(Vec::new()) };
    let outlive = format!("validTo gt {}", json!(plain(&row["validTo"])));
    // signatures of others are verified without a private key
    let filter = match row["certType"].as_str() {
        Some(kind @ "AdfsOAuthTokenSigning") => format!("{outlive} and certType eq {}", json!(kind)),
        _ => format!("{outlive} and certificateHasPrivateKey eq true"),
    };
    let mut input = Input::of(op, Vec::new());
    let query = [
        ("filter", filter.as_str()),
        ("count", MAX_SEARCHED),
        ("sortBy", "validTo"),
        ("sortOrder", "descending"),
    ];
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let rows = visit.perform(input).await?.json();
    Ok(rows.as_array().cloned().unwrap_or_default())
}

/// The cards of a certificate: its present use, and what happens when it expires.
pub async fn cards(visit: &Visit<'_>, Item { resource, row, .. }: Item<'_>) -> Result<Vec<Card>, Problem> {
    let words = visit.words;
    let kind = plain(&row["certType"]);
    let mut lines = Vec::new();
    let is_over = end(row).is_some_and(|end| end <= visit.now);
    let can_sign = SIGNING.contains(&kind.as_str());
    if is_over {
        lines.push(line("bad", words.page("cert_is_over"), "", None));
    }
    if can_sign && row["certificateHasPrivateKey"] != json!(true) {
        lines.push(line("bad", words.page("cert_no_key"), "", None));
    } else if can_sign {
        let outliving = outliving(visit, resource, row).await?;
        lines.extend(signing(visit, resource, row, &outliving));
        let names: Vec<String> = providers(row).iter().map(|one| plain(&one["name"])).collect();
        if !names.is_empty() {
            let text = format!("{} {}", words.page("cert_providers"), names.join(", "));
            lines.push(line("warn", &text, "", None));
        }
    } else {
        lines.push(line("", words.page(&format!("cert_does_{kind}")), "", None));
        let others = outliving(visit, resource, row).await?;
        lines.extend(taken_over(visit, resource, row, &others));
    }
    let title = words.page("cert_when_it_ends").into();
    Ok(vec![Card { title, kind: "checks", lines, ..Card::default() }])
}

/// The present use of a signing certificate, and its successor.
fn signing(visit: &Visit<'_>, resource: &'static Resource, row: &Value, outliving: &[Value]) -> Vec<Line> {
    let words = visit.words;
    let fits = |taker: &[(&str, Value)], other: &Value| {
        taker.iter().all(|(wire, value)| other.get(wire) == Some(value)) && other["id"] != row["id"]
    };
    let levels = successors(row);
    let takes_over = |level: &Vec<(&str, Value)>| outliving.iter().find(|other| fits(level, other));
    let link = |other: &Value| format!("{}/{}", visit.address(resource), encoded(&plain(&other["id"])));
    // of several with the same precedence, the one that is valid longest signs
    if let Some(other) = levels.first().and_then(takes_over) {
        let text = format!("{} {}", title_of(resource, other), words.page("cert_signs_already"));
        return vec![line("good", &text, "", Some(&link(other)))];
    }
    let does = line("good", words.page(&format!("cert_does_{}", plain(&row["certType"]))), "", None);
    let until = plain(&row["validTo"]);
    let after = match levels.iter().skip(1).find_map(takes_over) {
        Some(other) => {
            let text = format!("{} {}", words.page("cert_then_signs"), title_of(resource, other));
            Line { until, ..line("warn", &text, "", Some(&link(other))) }
        }
        None => Line { until, ..line("warn", words.page("cert_then_own"), "", None) },
    };
    vec![does, after]
}

/// The identity providers that use a certificate.
fn providers(row: &Value) -> &[Value] {
    row["idpInstances"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The successor of a certificate that decrypts or verifies, and the identity providers without one.
fn taken_over(visit: &Visit<'_>, resource: &'static Resource, row: &Value, others: &[Value]) -> Vec<Line> {
    let words = visit.words;
    let is_same = |wire: &&str, other: &Value| other[*wire] == row[*wire];
    let alike = |other: &&Value| is_same(&"certType", other) && other["id"] != row["id"];
    let of_same_owner =
        |other: &&Value| ["applyToTenantId", "applyToSubscriptionId"].iter().all(|wire| is_same(wire, other));
    let own = providers(row);
    let serves = |other: &&Value, id: &Value| providers(other).iter().any(|one| one["id"] == *id);
    let cut_off: Vec<String> = own
        .iter()
        .filter(|one| !others.iter().filter(alike).any(|other| serves(&other, &one["id"])))
        .map(|one| plain(&one["name"]))
        .collect();
    let until = plain(&row["validTo"]);
    if !cut_off.is_empty() {
        let text = format!("{} {}", words.page("cert_cut_off"), cut_off.join(", "));
        return vec![Line { until, ..line("warn", &text, "", None) }];
    }
    let follower = others.iter().filter(alike).find(|other| !own.is_empty() || of_same_owner(other));
    match follower {
        Some(other) => {
            let text = format!("{} {}", words.page("cert_then_takes"), title_of(resource, other));
            let href = format!("{}/{}", visit.address(resource), encoded(&plain(&other["id"])));
            vec![Line { until, ..line("good", &text, "", Some(&href)) }]
        }
        None => vec![Line { until, ..line("warn", words.page("cert_then_nobody"), "", None) }],
    }
}

fn line(tone: &'static str, text: &str, sub: &str, href: Option<&str>) -> Line {
    Line { tone, text: text.into(), sub: sub.into(), href: href.map(str::to_owned), ..Line::default() }
}

/// The resource of certificates.
fn certificates() -> Result<&'static Resource, Problem> {
    directory::of_shape(&CERT_STORE).ok_or_else(|| Problem::not_found("list of this"))
}
