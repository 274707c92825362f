//! The account page: own sessions, own passkeys, and preferences.

use std::sync::Arc;

use chancery_resource::Problem;
use chancery_signin::{
    ConsolePreference, OwnSession, OwnUser, SessionsToEnd, end_own_sessions, own_sessions, own_user,
    store_console_preference,
};
use chancery_store::{Mode, Tx};
use chancery_userstore::passkey::PASSKEY;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::user_agent::origin;
use crate::shell::{
    components::{Card, FormPage, Line},
    directory::{encoded, operation},
    fields::{control_field, plain, rfc3339},
    render::see_other,
    visit::{Visit, hue, initials, one, redirect_with_notice},
};

/// Path of this page.
const PATH: &str = "/console/me";

const THEMES: [(&str, &str); 3] = [("", "theme_system"), ("light", "theme_light"), ("dark", "theme_dark")];
const DENSITIES: [(&str, &str); 2] = [("", "density_normal"), ("compact", "density_compact")];
const KEYS: [(&str, &str); 2] = [("", "single_keys_on"), ("off", "single_keys_off")];
const LANGUAGES: [(&str, &str); 2] = [("en", "English"), ("de", "Deutsch")];
/// Time zones that browsers support, by their standard offset: one for each rule that many people live by.
const ZONES: [&str; 40] = [
    "UTC",
    "Pacific/Honolulu",
    "America/Anchorage",
    "America/Los_Angeles",
    "America/Denver",
    "America/Phoenix",
    "America/Chicago",
    "America/Mexico_City",
    "America/New_York",
    "America/Bogota",
    "America/Halifax",
    "America/Santiago",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Argentina/Buenos_Aires",
    "Atlantic/Azores",
    "Europe/London",
    "Africa/Lagos",
    "Europe/Berlin",
    "Europe/Vienna",
    "Europe/Zurich",
    "Europe/Paris",
    "Europe/Athens",
    "Africa/Cairo",
    "Africa/Johannesburg",
    "Asia/Jerusalem",
    "Europe/Istanbul",
    "Europe/Moscow",
    "Africa/Nairobi",
    "Asia/Tehran",
    "Asia/Dubai",
    "Asia/Karachi",
    "Asia/Kolkata",
    "Asia/Dhaka",
    "Asia/Bangkok",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Adelaide",
    "Australia/Sydney",
    "Pacific/Auckland",
];

/// Shows the page.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let words = visit.words;
    let (person, instance, now) = (visit.visitor.session.person, visit.visitor.session.instance, visit.now);
    let query = move |tx: &mut Tx<'_>| {
        Ok::<_, Problem>((own_sessions(tx, person, now)?, own_user(tx, person, instance)?))
    };
    let (sessions, user) = visit.app.store.run("Oneself", Mode::Quick, None, query).await?;
    let mut sidebar = vec![signed_in(visit, &sessions).await?];
    sidebar.extend(user.map(|user| passkeys(visit, &user)));
    let visitor = &visit.visitor;
    let page = FormPage {
        back: json!({ "href": "/console", "label": words.page("overview") }),
        heading: visitor.name.clone(),
        sub: visitor.login.clone(),
        avatar: json!({ "initials": initials(&visitor.name), "hue": hue(&visitor.name) }),
        sections: vec![preferences(visit)],
        hidden: vec![json!({ "name": "back", "value": PATH })],
        sidebar,
        bar: Some(json!({
            "cancel": { "href": PATH, "label": words.page("discard") }, "save": words.page("save"), "review": false,
        })),
        ..FormPage::default()
    };
    page.show(visit, 200)
}

/// The preferences: appearance, language, and keyboard shortcuts.
fn preferences(visit: &Visit<'_>) -> Value {
    let (words, chosen) = (visit.words, &visit.visitor.preference);
    let named = |choices: &[(&str, &str)]| -> Vec<(String, String)> {
        choices.iter().map(|(value, key)| ((*value).to_owned(), words.page(key).to_owned())).collect()
    };
    let zones = std::iter::once((String::new(), words.page("zone_browser").to_owned()));
    let zones = zones.chain(ZONES.map(|zone| (zone.to_owned(), zone.replace('_', " "))));
    let language = if chosen.language.is_empty() { words.tag } else { &chosen.language };
    let fields = [
        ("lang", "language", language, named(&LANGUAGES), ""),
        ("zone", "zone", &chosen.zone, zones.collect(), "zone_hint"),
        ("theme", "theme", &chosen.theme, named(&THEMES), ""),
        ("density", "density", &chosen.density, named(&DENSITIES), ""),
        ("single_keys", "single_keys", &chosen.single_keys, named(&KEYS), "single_keys_hint"),
    ];
    let fields = fields.map(|(name, label, current, choices, hint)| {
        let mut field = control_field(name, words.page(label), "choice");
        let choices = choices
            .into_iter()
            .map(|(value, label)| json!({ "is_current": value == current, "value": value, "label": label }));
        field.insert("choices".to_owned(), choices.collect());
        field.insert("is_wide".to_owned(), json!(false));
        if !hint.is_empty() {
            field.insert("hint".to_owned(), json!(words.page(hint)));
        }
        field
    });
    json!({ "title": words.page("preferences"), "about": "", "fields": fields, "is_readonly": false })
}

/// Saves the preferences and redirects back. Preferences that the form lacks stay unchanged.
pub async fn save(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let former = &visit.visitor.preference;
    let among = |name: &str, known: &[&str], former: &str| {
        let Some(chosen) = one(&visit.form, name) else { return former.to_owned() };
        known.iter().find(|one| **one == chosen).map_or_else(String::new, |one| (*one).to_owned())
    };
    let preference = ConsolePreference {
        theme: among("theme", &["light", "dark"], &former.theme),
        language: among("lang", &["en", "de"], &former.language),
        density: among("density", &["compact"], &former.density),
        zone: among("zone", &ZONES, &former.zone),
        single_keys: among("single_keys", &["off"], &former.single_keys),
    };
    let person = visit.visitor.session.person;
    let update = move |tx: &mut Tx<'_>| store_console_preference(tx, person, &preference);
    visit.app.store.run("KeepPreference", Mode::Write, None, update).await?;
    let back = one(&visit.form, "back").unwrap_or_default();
    if back == PATH {
        return Ok(redirect_with_notice(PATH, "saved"));
    }
    // redirect within the console only
    let is_ours = back.starts_with("/console") && !back.contains(['\\', '\r', '\n']);
    Ok(see_other(if is_ours { back } else { "/console" }))
}

/// Ends one of the user's sessions, or all others.
pub async fn end(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    let (person, this) = (visit.visitor.session.person, visit.visitor.session.sign_in);
    let which = match one(&visit.form, "session") {
        Some("others") => SessionsToEnd::AllBut(this),
        id => {
            let id = id.and_then(|id| Uuid::try_parse(id).ok());
            // the present session is ended by signing out, which notifies client apps and the browser
            let id = id.filter(|id| *id != this);
            SessionsToEnd::One(id.ok_or_else(|| Problem::not_found("other session of yours"))?)
        }
    };
    let (context, now) = (Arc::clone(&visit.app.context), visit.now);
    let ending = move |tx: &mut Tx<'_>| end_own_sessions(&context, tx, person, which, now);
    let count = visit.app.store.run("EndOwnSessions", Mode::Write, None, ending).await?;
    Ok(redirect_with_notice(PATH, if count == 0 { "unchanged" } else { "ended" }))
}

/// The sessions of the user, each with a button that ends it.
async fn signed_in(visit: &Visit<'_>, sessions: &[OwnSession]) -> Result<Card, Problem> {
    let words = visit.words;
    let origins = origins(visit).await?;
    let act = |label: &str, session: &str| {
        json!({
            "action": "/console/me/session", "label": words.page(label),
            "fields": [{ "name": "session", "value": session }],
        })
    };
    let mut lines: Vec<Line> = sessions
        .iter()
        .map(|session| {
            let is_this = session.id == visit.visitor.session.sign_in;
            let id = session.id.to_string();
            let origin = origins.iter().find(|(of, _)| *of == id).map(|(_, origin)| origin.clone());
            let text = if is_this { words.page("session_this").to_owned() } else { session.tenant.clone() };
            Line {
                icon: Some("globe"),
                text: origin.unwrap_or_else(|| text.clone()),
                sub: if is_this { text } else { words.page("last_used").to_owned() },
                iso: rfc3339(session.used_on),
                act: (!is_this).then(|| act("end", &id)),
                ..Line::default()
            }
        })
        .collect();
    if sessions.len() > 1 {
        let text = words.page("sessions_others").to_owned();
        lines.push(Line {
            icon: Some("log-out"),
            text,
            act: Some(act("end_all", "others")),
            ..Line::default()
        });
    }
    Ok(Card {
        title: words.page("sessions_own").into(),
        kind: "lines",
        about: words.page("sessions_own_about").into(),
        lines,
        ..Card::default()
    })
}

/// Where the user's sessions started, from sign-in records if the user may read them: session ids and origins.
async fn origins(visit: &Visit<'_>) -> Result<Vec<(String, String)>, Problem> {
    let Some(op) = visit.may(operation!("GetSignInRecords")) else { return Ok(Vec::new()) };
    let person = visit.visitor.session.person;
    let mut input = Input::of(op, Vec::new());
    let filter = format!("platformUserId eq {} and outcome eq \"SignedIn\"", json!(person));
    input.query = [
        ("filter", filter.as_str()),
        ("sortBy", "occurredOn"),
        ("sortOrder", "descending"),
        ("count", "100"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let rows = visit.perform(input).await?.json();
    let records = rows.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(|row| {
        let member = |name: &str| row.get(name).map_or_else(String::new, plain);
        (member("sessionId"), origin(row))
    });
    Ok(records.filter(|(_, origin)| !origin.is_empty()).collect())
}

/// The passkeys of the user, with a link to their page if the user may open it.
fn passkeys(visit: &Visit<'_>, user: &OwnUser) -> Card {
    let words = visit.words;
    let lines: Vec<Line> = user
        .passkeys
        .iter()
        .map(|passkey| Line {
            icon: Some("fingerprint-pattern"),
            text: passkey.name.clone(),
            sub: words
                .page(if passkey.last_used_on.is_some() { "last_used" } else { "never_used" })
                .to_owned(),
            iso: rfc3339(passkey.last_used_on.unwrap_or(passkey.created_on)),
            ..Line::default()
        })
        .collect();
    let is_here = visit.store.as_deref() == Some(&user.store);
    let may = is_here && visit.may(operation!("GetPasskeyCredentialsByUserId")).is_some();
    let href = format!("/console/store/{}/User/{}/owned/PasskeyCredential", encoded(&user.store), user.id);
    Card {
        title: words.resources(PASSKEY.name),
        kind: "lines",
        about: words.page(if lines.is_empty() { "passkeys_none" } else { "" }).into(),
        count: (!lines.is_empty()).then(|| lines.len().to_string()),
        lines,
        more: may.then(|| json!({ "href": href, "label": words.page("edit") })),
        ..Card::default()
    }
}
