//! Appearance of the sign-in pages: the brand of a tenant, and the custom views that override the shipped ones.

use std::sync::OnceLock;

use chancery_presentation::{
    asset,
    language::Language,
    location::{ApplyTo, Kind, prefix},
    view::{Failure, Views},
};
use chancery_record::Value;
use chancery_resource::settings::{Form, TenantOption, links};
use chancery_resource::{CONSOLE, PLATFORM, StoreError, Tx, selectable};
use serde_json::{Map, json};
use uuid::Uuid;

/// The owners of the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owners {
    /// The tenant of the sign-in.
    pub tenant: Option<Uuid>,
    /// The client app.
    pub client_app: Option<Uuid>,
    /// The subscription, if neither tenant nor client app is set.
    pub subscription: Option<Uuid>,
}

/// The options of a tenant that change the appearance of its pages.
const NAME: &str = TenantOption::BRAND_NAME.name();
const LOGO: &str = TenantOption::BRAND_LOGO.name();
const COLOUR: &str = TenantOption::BRAND_COLOUR.name();
const PAGE_LINKS: &str = TenantOption::PAGE_LINKS.name();

selectable! {
    /// One of these options.
    struct BrandOption<'r> from "FROM option_value WHERE apply_to_tenant_id = ?1 \
        AND name IN ('BrandName', 'BrandLogo', 'BrandColour', 'PageLinks')" {
        name: &'r str = "name",
        value: &'r str = "value",
    }
}

selectable! {
    /// The subscriptions of a tenant and of a client app, and whether the client app has a resource of the platform.
    #[derive(Default)]
    struct SubscriptionsOfOwners from "" {
        of_tenant: Option<Uuid> = "(SELECT subscription_id FROM tenant WHERE id = ?1)",
        of_app: Option<Uuid> = "(SELECT subscription_id FROM client_app WHERE id = ?2)",
        is_of_platform: bool =
            "EXISTS (SELECT 1 FROM client_app_resource WHERE client_app_id = ?2 AND key IN (?3, ?4))",
    }
}

selectable! {
    /// A view with a location of one prefix.
    struct StoredView<'r> from "FROM custom_view WHERE location >= ?1 AND location < ?2 ORDER BY location" {
        location: &'r str = "location",
        content: &'r str = "content",
    }
}

/// The appearance of the pages of some owners.
pub struct Appearance {
    /// `brand` of a page: `name`, `logo` and `colour`, as far as they are set.
    pub brand: serde_json::Value,
    /// `links` of a page, each with `name` and `url`.
    pub links: serde_json::Value,
    own: Vec<(String, String)>,
    english: OnceLock<Views>,
    german: OnceLock<Views>,
}

impl PartialEq for Appearance {
    fn eq(&self, other: &Self) -> bool {
        (&self.brand, &self.links, &self.own) == (&other.brand, &other.links, &other.own)
    }
}

impl Appearance {
    /// The appearance without any customization.
    pub fn shipped() -> Self {
        Self::of(Map::new(), Vec::new(), Vec::new())
    }

    fn of(
        brand: Map<String, serde_json::Value>,
        links: Vec<serde_json::Value>,
        own: Vec<(String, String)>,
    ) -> Self {
        let [english, german] = [OnceLock::new(), OnceLock::new()];
        Self { brand: brand.into(), links: links.into(), own, english, german }
    }

    /// Reads the appearance for these owners.
    pub fn read(tx: &mut Tx<'_>, owners: Owners) -> Result<Self, StoreError> {
        let (mut brand, mut named) = (Map::new(), Vec::new());
        if let Some(tenant) = owners.tenant {
            tx.query(BrandOption::SELECT, &[tenant.into()], |row| {
                let option = BrandOption::read(row)?;
                put(&mut brand, &mut named, option.name, option.value);
                Ok(())
            })?;
        }
        Ok(Self::of(brand, named, views_of(tx, owners)?))
    }

    /// Overrides one of the tenant's options; an empty value removes it.
    pub fn put(&mut self, name: &str, value: &str) {
        if let (Some(brand), Some(links)) = (self.brand.as_object_mut(), self.links.as_array_mut()) {
            put(brand, links, name, value);
        }
    }

    /// Whether custom views override the shipped ones.
    pub const fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// The size of the custom views in bytes.
    pub fn bytes(&self) -> usize {
        self.own.iter().map(|(name, source)| name.len() + source.len()).sum()
    }

    /// The custom views by location and by name; views of nearer owners last.
    pub fn own(&self) -> &[(String, String)] {
        &self.own
    }

    /// Adds the brand and the links to a page's context, as far as they are set.
    pub fn fill(&self, context: &mut serde_json::Value) {
        if let Some(members) = context.as_object_mut() {
            if self.brand.as_object().is_some_and(|brand| !brand.is_empty()) {
                members.insert("brand".to_owned(), self.brand.clone());
            }
            if self.links.as_array().is_some_and(|links| !links.is_empty()) {
                members.insert("links".to_owned(), self.links.clone());
            }
        }
    }

    /// The views in this language, parsed once. `report` gets each view that is left out, once.
    pub fn views(&self, language: Language, report: impl Fn(&Failure)) -> &Views {
        let parsed = match language {
            Language::English => &self.english,
            Language::German => &self.german,
        };
        parsed.get_or_init(|| {
            let (views, failures) = Views::new(language, self.own.iter().cloned());
            failures.iter().for_each(report);
            views
        })
    }
}

/// Applies one of the appearance options. An invalid value is reported at the option.
fn put(
    brand: &mut Map<String, serde_json::Value>,
    named: &mut Vec<serde_json::Value>,
    name: &str,
    value: &str,
) {
    let value = value.trim();
    let (member, shown) = match name {
        PAGE_LINKS => {
            let listed = links(value).unwrap_or_default();
            *named = listed.iter().map(|(name, url)| json!({ "name": name, "url": url })).collect();
            return;
        }
        LOGO => ("logo", Some(value).filter(|value| Form::Address.fits(value)).map(logo)),
        COLOUR => ("colour", Some(value).filter(|value| Form::Colour.fits(value)).map(str::to_owned)),
        NAME => ("name", Some(value.to_owned())),
        _ => return,
    };
    match shown.filter(|shown| !shown.is_empty()) {
        Some(shown) => drop(brand.insert(member.to_owned(), shown.into())),
        None => drop(brand.remove(member)),
    }
}

/// The URL of a logo. A path is that of an asset, already percent-encoded: the option's value is a URL reference (RFC 3986).
fn logo(value: &str) -> String {
    if value.starts_with('/') { format!("/content{value}") } else { value.to_owned() }
}

/// The views of these owners by location and by name, views of nearer owners last: of the installation, the
/// subscription, the client app and the tenant. A client app of another subscription than the tenant's does not change the
/// tenant's pages. The sign-in to the platform itself has none: the author of a page could use it to mislead people
/// with more rights.
pub fn views_of(tx: &mut Tx<'_>, owners: Owners) -> Result<Vec<(String, String)>, StoreError> {
    let Owners { tenant, client_app, subscription } = owners;
    let id = |id: Option<Uuid>| id.map_or(Value::Null, Value::Id);
    let mut subscriptions = None;
    if tenant.is_some() || client_app.is_some() {
        let [management, user_store] = PLATFORM;
        let parameters = [id(tenant), id(client_app), management.into(), user_store.into()];
        subscriptions = tx.one(SubscriptionsOfOwners::SELECT, &parameters, SubscriptionsOfOwners::read)?;
    }
    let SubscriptionsOfOwners { of_tenant, of_app, is_of_platform } = subscriptions.unwrap_or_default();
    if is_of_platform || client_app == Some(CONSOLE) {
        return Ok(Vec::new());
    }
    let client_app = client_app.filter(|_| of_tenant.is_none() || of_tenant == of_app);
    let levels = [
        Some((ApplyTo::Global, None)),
        of_tenant.or(of_app).or(subscription).map(|id| (ApplyTo::Subscription, Some(id))),
        client_app.map(|id| (ApplyTo::ClientApp, Some(id))),
        tenant.map(|id| (ApplyTo::Tenant, Some(id))),
    ];
    let prefixes: Vec<String> =
        levels.into_iter().flatten().map(|(level, id)| prefix(Kind::View, level, id)).collect();
    let bounds: Vec<[Value; 2]> = prefixes.iter().map(|prefix| between(prefix)).collect();
    let statements: Vec<(&str, &[Value])> =
        bounds.iter().map(|bounds| (StoredView::SELECT, &bounds[..])).collect();
    let mut own = Vec::new();
    tx.query_all(&statements, &mut |index, row| {
        let StoredView { location, content } = StoredView::read(row)?;
        let name = prefixes.get(index).and_then(|prefix| location.strip_prefix(prefix.as_str()));
        own.extend(name.map(|name| (name.to_owned(), content.to_owned())));
        own.push((location.to_owned(), content.to_owned()));
        Ok(())
    })?;
    Ok(own)
}

/// The range of the strings with a prefix: lower bound (inclusive) and upper bound (exclusive).
pub fn between(prefix: &str) -> [Value; 2] {
    let after = prefix.strip_suffix('/').map_or_else(|| prefix.to_owned(), |all| format!("{all}0"));
    [Value::Text(prefix.to_owned()), Value::Text(after)]
}

/// A file that pages embed.
pub struct Asset {
    /// Its media type.
    pub media_type: &'static str,
    /// Content of the file.
    pub data: bytes::Bytes,
    /// The version, which each write changes.
    pub version: String,
}

selectable! {
    /// A file as it is stored.
    struct StoredAsset<'r> from "FROM custom_asset WHERE location = ?1" {
        media_type: &'r str = "mimetype",
        data: &'r [u8] = "data",
        version: String = "concurrency_token",
    }
}

/// The file at a location.
pub fn asset_at(tx: &mut Tx<'_>, location: &str) -> Result<Option<Asset>, StoreError> {
    tx.one(StoredAsset::SELECT, &[location.into()], |row| {
        let stored = StoredAsset::read(row)?;
        let media_type = asset::mime_types().iter().find(|known| **known == stored.media_type);
        let media_type = media_type.copied().unwrap_or("application/octet-stream");
        Ok(Asset { media_type, data: stored.data.to_vec().into(), version: stored.version })
    })
}
