//! Integration of a client app: the endpoints, and the reasons of refused requests.

use chancery_management::client_app::refusal::CLIENT_APP_REFUSAL;
use chancery_resource::Problem;
use chancery_web::{Input, endpoints};
use serde_json::{Value, json};

use crate::shell::{
    components::{Card, Line},
    directory::{self, encoded},
    fields::plain,
    visit::Visit,
};

/// Maximum number of refusals on a card.
const MAX_LINES: &str = "5";

/// The endpoints of the installation as an issuer, each with a copy button.
pub fn addresses(visit: &Visit<'_>) -> Card {
    let issuer = visit.app.token_service.installation();
    let line = |(name, address): (&str, String)| Line {
        text: visit.words.page(name).to_owned(),
        sub: address,
        ..Line::default()
    };
    Card {
        title: visit.words.page("endpoints").into(),
        kind: "addresses",
        lines: endpoints(visit.app, &issuer).into_iter().map(line).collect(),
        ..Card::default()
    }
}

/// The refused requests of a client app by kind, the last ones first; `None` if the user may not list them.
pub async fn refusals(visit: &Visit<'_>, key: &str) -> Result<Option<Card>, Problem> {
    let refusal_resource = directory::of_shape(&CLIENT_APP_REFUSAL);
    let Some((resource, op)) = refusal_resource
        .and_then(|refusal_resource| Some((refusal_resource, visit.may(refusal_resource.list)?)))
    else {
        return Ok(None);
    };
    let mut input = Input::of(op, Vec::new());
    let filter = format!("clientAppId eq {}", json!(key));
    let query = [
        ("filter", filter.as_str()),
        ("sortBy", "lastOn"),
        ("sortOrder", "descending"),
        ("count", MAX_LINES),
    ];
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let rows = visit.perform(input).await?.json();
    let address = visit.address(resource);
    let lines: Vec<Line> =
        rows.as_array().into_iter().flatten().map(|row| refusal_line(&address, row)).collect();
    let href = format!("{address}?of=clientAppId:{}", encoded(key));
    Ok(Some(Card {
        title: visit.words.page("recent_refusals").into(),
        kind: "checks",
        about: if lines.is_empty() { visit.words.page("recent_refusals_none").into() } else { String::new() },
        more: (!lines.is_empty()).then(|| json!({ "href": href, "label": visit.words.page("all") })),
        lines,
        ..Card::default()
    }))
}

fn refusal_line(address: &str, row: &Value) -> Line {
    let member = |name: &str| row.get(name).map_or_else(String::new, plain);
    Line {
        icon: Some("triangle-alert"),
        text: format!("{} {}", member("endpoint"), member("error")),
        sub: member("reason"),
        iso: member("lastOn"),
        href: Some(format!("{address}/{}", encoded(&member("id")))),
        ..Line::default()
    }
}
