//! The page of an external identity provider: the addresses to register there, certificates that expire, the last
//! sign-ins, and the users it provided. All data are stored here: the provider is not contacted.

use chancery_auth::issuer_url;
use chancery_management::{
    application::APPLICATION_USER, cert_store::CERT_STORE, idp_instance::connection::callback_path,
    sign_in::record::SIGN_IN_RECORD,
};
use chancery_record::{parse_id, parse_timestamp};
use chancery_resource::{
    Op, Problem, Shape,
    settings::{ProviderOption, flag},
};
use chancery_signin::SIGNED_OUT;
use chancery_web::{AnswerBody, Input};
use http::Response;
use serde_json::{Value, json};

use super::provider_connect::of_row;
use crate::{
    pages::{cells::SOON_MS, item::read, settings},
    shell::{
        components::{Card, FormPage, Line},
        directory::{self, Resource, encoded, key_of, title_of},
        fields::{plain, rfc3339},
        visit::{Visit, not_found},
    },
};

/// Maximum number of shown users, tenants and certificates.
const MAX_SHOWN: usize = 10;
/// The field of a platform user with the identity provider of an identity.
const CAME_BY: &str = "identities.idpInstanceId";

/// The first rows of a filtered and sorted list.
async fn list_rows(
    visit: &Visit<'_>,
    op: &'static Op,
    filter: &str,
    count: usize,
    field: &str,
    order: &str,
) -> Result<Vec<Value>, Problem> {
    let mut input = Input::of(op, Vec::new());
    input.is_minimal = true;
    let count = count.to_string();
    let query = [("filter", filter), ("count", count.as_str()), ("sortBy", field), ("sortOrder", order)];
    input.query.extend(query.map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok(visit.perform(input).await?.rows())
}

/// The addresses to register at the provider, each with a copy button, if the user may see the instance's settings.
pub async fn addresses(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    row: &Value,
) -> Result<Option<Card>, Problem> {
    let Some(kind) = of_row(row).filter(|_| settings::are_offered(visit, resource)) else { return Ok(None) };
    let words = visit.words;
    let path = settings::value_of(visit, resource, key, ProviderOption::CALLBACK_PATH).await?;
    let path = callback_path(key, path.as_deref().unwrap_or_default());
    let public_url = &visit.app.context.public_url;
    let line = |text: String, address: String| Line { text, sub: address, ..Line::default() };
    let mut lines = vec![line(words.page("redirect_address").to_owned(), format!("{public_url}{path}"))];
    let signs_out = if kind.name == "OpenIdConnect" {
        settings::value_of(visit, resource, key, ProviderOption::SIGN_OUT_UPSTREAM).await?
    } else {
        None
    };
    if signs_out.and_then(|text| flag(&text)) == Some(true) {
        let address = |tenant| format!("{}/signin/{SIGNED_OUT}", issuer_url(public_url, tenant));
        lines.push(line(words.page("signed_out_address").to_owned(), address(None)));
        let tenants = row["tenants"].as_array().into_iter().flatten().take(MAX_SHOWN);
        // each tenant is an issuer of its own
        lines.extend(tenants.filter_map(|tenant| {
            let id = parse_id(tenant["id"].as_str()?)?;
            let text = format!("{}: {}", words.page("signed_out_address"), plain(&tenant["name"]));
            Some(line(text, address(Some(id))))
        }));
    }
    Ok(Some(Card {
        title: words.page("addresses_there").into(),
        kind: "addresses",
        about: words.page("addresses_there_about").into(),
        lines,
        ..Card::default()
    }))
}

/// The certificates of an instance that expire soon, if the user may list them.
pub async fn certificates(visit: &Visit<'_>, key: &str, row: &Value) -> Result<Vec<Line>, Problem> {
    let has_some = row["certStores"].as_array().is_some_and(|all| !all.is_empty());
    let stores = directory::of_shape(&CERT_STORE).filter(|_| has_some && of_row(row).is_some());
    let Some((stores, op)) = stores.and_then(|stores| Some((stores, visit.may(stores.list)?))) else {
        return Ok(Vec::new());
    };
    let soon = json!(rfc3339(visit.now.plus(SOON_MS)));
    let filter = format!("idpInstances.id eq {} and validTo lt {soon}", json!(key));
    let ending = list_rows(visit, op, &filter, MAX_SHOWN, "validTo", "ascending").await?;
    let lines = ending.iter().map(|one| {
        let end = one["validTo"].as_str().and_then(parse_timestamp);
        let is_over = end.is_some_and(|end| end <= visit.now);
        let key = if is_over { "provider_cert_over" } else { "provider_cert_ends" };
        Line {
            tone: if is_over { "bad" } else { "warn" },
            text: format!("{}: {}", visit.words.page(key), title_of(stores, one)),
            until: if is_over { String::new() } else { plain(&one["validTo"]) },
            href: Some(format!("{}/{}", visit.address(stores), encoded(&key_of(stores, one)))),
            ..Line::default()
        }
    });
    Ok(lines.collect())
}

/// The secret of an instance, if a linked certificate replaces it. The row says only whether the instance as a whole is
/// usable.
pub async fn replaced_setting(
    visit: &Visit<'_>,
    key: &str,
    row: &Value,
) -> Result<Option<&'static str>, Problem> {
    let is_replaced = has_signing_certificate(visit, key, row).await?;
    Ok(is_replaced.then(|| ProviderOption::CLIENT_SECRET.name()))
}

/// Whether a linked certificate authenticates this server to the provider, as far as the user may list certificates.
async fn has_signing_certificate(visit: &Visit<'_>, key: &str, row: &Value) -> Result<bool, Problem> {
    let has_some = row["certStores"].as_array().is_some_and(|all| !all.is_empty());
    let kind = of_row(row).filter(|_| has_some).map(|kind| kind.name);
    let stores = directory::of_shape(&CERT_STORE).and_then(|stores| visit.may(stores.list));
    let (Some("OpenIdConnect" | "AdfsOAuth" | "Microsoft" | "Google"), Some(op)) = (kind, stores) else {
        return Ok(false);
    };
    let has = async |condition: &str| {
        let filter = format!("idpInstances.id eq {} and {condition}", json!(key));
        Ok::<_, Problem>(!list_rows(visit, op, &filter, 1, "validTo", "ascending").await?.is_empty())
    };
    let now = json!(rfc3339(visit.now));
    let can_sign = format!(
        "certType eq \"OidcTokenSigning\" and certificateHasPrivateKey eq true and validFrom le {now} and validTo gt {now}"
    );
    // AD FS with a certificate of its own tokens is no OpenID provider, and needs the secret
    let is_adfs = kind == Some("AdfsOAuth");
    Ok(has(&can_sign).await? && !(is_adfs && has("certType eq \"AdfsOAuthTokenSigning\"").await?))
}

/// A list about the users of an instance: the title of its card, its resource, the last segment of its URL, and the
/// parameter that filters the whole list.
struct About {
    title: &'static str,
    shape: &'static Shape,
    page: &'static str,
    of: &'static str,
}

static SIGN_INS: About =
    About { title: "provider_sign_ins", shape: &SIGN_IN_RECORD, page: "sign-ins", of: "idpInstanceId" };
static PEOPLE: About =
    About { title: "provider_people", shape: &APPLICATION_USER, page: "people", of: CAME_BY };

impl About {
    /// Its resource, and its list operation if the user may call it.
    fn list(&self, visit: &Visit<'_>) -> Option<(&'static Resource, &'static Op)> {
        let resource = directory::of_shape(self.shape)?;
        Some((resource, visit.may(resource.list)?))
    }

    fn card(&self, visit: &Visit<'_>, resource: &Resource, key: &str) -> Card {
        let href = format!("{}?of={}:{}", visit.address(resource), self.of, encoded(key));
        Card {
            title: visit.words.page(self.title).into(),
            kind: "checks",
            more: Some(json!({ "href": href, "label": visit.words.page("all") })),
            ..Card::default()
        }
    }
}

/// Placeholders for the last sign-ins and the users, which are loaded after the page: the cost of their queries is
/// unknown.
pub fn later(visit: &Visit<'_>, key: &str, here: &str, row: &Value) -> Vec<Card> {
    if of_row(row).is_none() {
        return Vec::new();
    }
    let cards = [&SIGN_INS, &PEOPLE].into_iter().filter_map(|about| {
        let (resource, _) = about.list(visit)?;
        Some(Card { later: Some(format!("{here}/{}", about.page)), ..about.card(visit, resource, key) })
    });
    cards.collect()
}

/// Shows the last sign-ins.
///
/// # Errors
/// The user may not list them, or it is no external provider.
pub async fn show_sign_ins(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    show(visit, resource, key, &SIGN_INS).await
}

/// Shows the users.
///
/// # Errors
/// As [`show_sign_ins`].
pub async fn show_people(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
) -> Result<Response<AnswerBody>, Problem> {
    show(visit, resource, key, &PEOPLE).await
}

async fn show(
    visit: &Visit<'_>,
    resource: &'static Resource,
    key: &str,
    about: &About,
) -> Result<Response<AnswerBody>, Problem> {
    let of = directory::of_shape(about.shape).ok_or_else(not_found)?;
    let op = visit.require(of.list)?;
    let row = read(visit, resource, key).await?;
    of_row(&row).ok_or_else(not_found)?;
    let lines = if about.page == PEOPLE.page {
        people(visit, of, op, key).await?
    } else {
        sign_ins(visit, of, op, key).await?
    };
    let title = title_of(resource, &row);
    let page = FormPage {
        back: json!({ "href": format!("{}/{}", visit.address(resource), encoded(key)), "label": title }),
        heading: format!("{title}: {}", visit.words.page(about.title)),
        middle: vec![Card { lines, ..about.card(visit, of, key) }],
        ..FormPage::default()
    };
    page.show(visit, 200)
}

/// The last successful and the last refused sign-in through an instance.
async fn sign_ins(
    visit: &Visit<'_>,
    records: &'static Resource,
    op: &'static Op,
    key: &str,
) -> Result<Vec<Line>, Problem> {
    let words = visit.words;
    let mut lines = Vec::new();
    for (outcome, tone, text) in
        [("SignedIn", "good", "provider_last_sign_in"), ("Refused", "warn", "provider_last_refusal")]
    {
        let filter = format!("idpInstanceId eq {} and outcome eq {}", json!(key), json!(outcome));
        let last = list_rows(visit, op, &filter, 1, "id", "descending").await?;
        lines.extend(last.iter().map(|record| Line {
            tone,
            text: words.page(text).into(),
            sub: record["reason"].as_str().map_or_else(String::new, |reason| words.choice(reason).to_owned()),
            iso: plain(&record["lastAttemptOn"]),
            href: Some(format!("{}/{}", visit.address(records), encoded(&key_of(records, record)))),
            ..Line::default()
        }));
    }
    if lines.is_empty() {
        lines.push(Line { tone: "off", text: words.page("provider_no_sign_in").into(), ..Line::default() });
    }
    Ok(lines)
}

/// The users of an instance, the newest first: ids rise with time.
async fn people(
    visit: &Visit<'_>,
    people: &'static Resource,
    op: &'static Op,
    key: &str,
) -> Result<Vec<Line>, Problem> {
    let filter = format!("{CAME_BY} eq {}", json!(key));
    let rows = list_rows(visit, op, &filter, MAX_SHOWN, "id", "descending").await?;
    let mut lines: Vec<Line> = rows
        .iter()
        .map(|person| Line {
            icon: Some("user-round"),
            text: title_of(people, person),
            sub: plain(&person["emailAddress"]),
            href: Some(format!("{}/{}", visit.address(people), encoded(&key_of(people, person)))),
            ..Line::default()
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line { tone: "off", text: visit.words.page("provider_nobody").into(), ..Line::default() });
    }
    Ok(lines)
}
