//! How the person wants pages to look.

use chancery_resource::Problem;
use chancery_signin::{ConsolePreference, keep_console_preference};
use chancery_store::{Mode, Tx};
use chancery_web::AnswerBody;
use http::Response;

use crate::{
    render::see_other,
    visit::{Visit, one},
};

/// Keeps what was chosen, and goes back.
///
/// # Errors
/// Those of the store.
pub async fn keep(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let among = |name: &str, known: &[&str]| {
        let chosen = one(&visit.form, name).unwrap_or_default();
        known.iter().find(|one| **one == chosen).map_or_else(String::new, |one| (*one).to_owned())
    };
    let wanted = ConsolePreference {
        theme: among("theme", &["light", "dark"]),
        language: among("lang", &["en", "de"]),
        density: among("density", &["compact"]),
    };
    let person = visit.visitor.session.person;
    let keeping = move |tx: &mut Tx<'_>| keep_console_preference(tx, person, &wanted);
    visit.app.store.run("KeepPreference", Mode::Write, None, keeping).await?;
    let back = one(&visit.form, "back").unwrap_or_default();
    // within the console alone
    let is_ours = back.starts_with("/console") && !back.contains(['\\', '\r', '\n']);
    Ok(see_other(if is_ours { back } else { "/console" }))
}
