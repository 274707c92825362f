//! A view that no page shows: no page has its name, and no view includes it.

use chancery_management::custom_view::view_name;
use chancery_presentation::{shipped, view};
use chancery_resource::Problem;
use chancery_web::Input;
use serde_json::{Value, json};

use crate::shell::{
    components::{Card, Line},
    fields::plain,
    presentation::Item,
    visit::Visit,
};

/// Maximum number of views that are searched for the name.
const MAX_SEARCHED: usize = 20;

/// The card of such a view; none for any other.
pub async fn cards(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let location = plain(&item.row["location"]);
    let name = view_name(&location);
    if shipped::all_names().any(|known| name == Some(known)) || is_included(visit, item, &location).await? {
        return Ok(Vec::new());
    }
    let words = visit.words;
    let line = Line { tone: "warn", text: words.page("view_unused").into(), ..Line::default() };
    let title = words.resource(item.resource.name);
    Ok(vec![Card { title, kind: "checks", lines: vec![line], ..Card::default() }])
}

/// Whether one of the other views includes it; also if there are too many that may.
async fn is_included(visit: &Visit<'_>, item: Item<'_>, location: &str) -> Result<bool, Problem> {
    // the location ends with the name
    let name = view_name(location).unwrap_or(location);
    let Some(op) = visit.may(item.resource.list) else { return Ok(true) };
    let mut input = Input::of(op, Vec::new());
    let filter = format!("content co {} and location ne {}", json!(name), json!(location));
    input.query.extend([("filter".to_owned(), filter), ("count".to_owned(), MAX_SEARCHED.to_string())]);
    let views = match visit.perform(input).await {
        Ok(found) => found.rows(),
        // too long together for a page: one of them may include it
        Err(problem) if problem.status() == 413 => return Ok(true),
        Err(problem) => return Err(problem),
    };
    let includes = |other: &Value| view::includes(&plain(&other["content"]), &[name, location]);
    Ok(views.len() == MAX_SEARCHED || views.iter().any(includes))
}
