//! The management service, version 1.

use std::sync::LazyLock;

use chancery_management::{
    SERVICE as SUCCESSOR,
    cert_store::{self, CertStore},
    claim_rule::{self, ClaimRule},
    custom_asset::{self, CustomAsset, CustomAssetCreateByExpander},
    custom_view::{self, CustomView, CustomViewCreateFromTemplate},
    customer::{self, Customer},
    idp_instance::{self, IdpInstance, IdpInstanceMetadata},
    idp_type::{self, IdpType},
    ip_address_range::{self, IpAddressRange},
    option::{self, OptionRow},
};
use chancery_record::{Field, Json, Kind, Record};
use chancery_resource::{Answer, BodyForm, Call, Op, Problem, Service, Shape, Tx};

use crate::{
    form::{form, same, shown, written},
    pattern::{Resource, pattern},
    special::{find, known_only, renamed, with_path_name},
    userstore::second_list,
};

static CERT_STORE: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &cert_store::CERT_STORE,
        &[
            same(CertStore::ID),
            same(CertStore::NAME),
            same(CertStore::DESCRIPTION),
            same(CertStore::CERT_TYPE).number(),
            same(CertStore::CERTIFICATE),
            same(CertStore::PASSWORD),
            same(CertStore::THUMBPRINT),
            same(CertStore::VALID_FROM),
            same(CertStore::VALID_TO),
            same(CertStore::ISSUER),
            same(CertStore::SERIAL_NUMBER),
            same(CertStore::SUBJECT),
            same(CertStore::APPLY_TO_TYPE).number(),
            same(CertStore::APPLY_TO_SUBSCRIPTION_ID),
            same(CertStore::APPLY_TO_TENANT_ID),
        ],
        &[written("idpInstances").above_tenants()],
        Vec::new(),
    )
});

static CLAIM_RULE: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &claim_rule::CLAIM_RULE,
        &[
            same(ClaimRule::ID),
            same(ClaimRule::NAME),
            same(ClaimRule::RULE_TYPE).number(),
            same(ClaimRule::FILTER_TARGET).number(),
            same(ClaimRule::TRANSFORM_TARGET).number(),
            same(ClaimRule::RULE_LEVEL).number(),
            same(ClaimRule::DESTINATION).number(),
            same(ClaimRule::PRIORITY),
            same(ClaimRule::TYPE_EVALUATION_RULE),
            same(ClaimRule::VALUE_EVALUATION_RULE),
            same(ClaimRule::TYPE_TRANSFORMATION_RULE),
            same(ClaimRule::VALUE_TRANSFORMATION_RULE),
            same(ClaimRule::TYPE_TRANSFORMATION_REPLACEMENT),
            same(ClaimRule::VALUE_TRANSFORMATION_REPLACEMENT),
            same(ClaimRule::IS_ACTIVE),
            same(ClaimRule::SUBSCRIPTION_ID),
            same(ClaimRule::APPLY_TO_IDP_INSTANCE_ID),
            same(ClaimRule::APPLY_TO_SUBSCRIPTION_ID),
            same(ClaimRule::APPLY_TO_TENANT_ID),
        ],
        &[written("clientApps")],
        Vec::new(),
    )
});

static CUSTOM_ASSET: LazyLock<Shape> = LazyLock::new(|| {
    let members = [
        same(CustomAsset::LOCATION),
        same(CustomAsset::MIMETYPE),
        same(CustomAsset::DATA),
        same(CustomAsset::SIZE),
        same(CustomAsset::FILE_NAME),
    ];
    form(&custom_asset::CUSTOM_ASSET, &members, &[], Vec::new())
});

static CUSTOMER: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &customer::CUSTOMER,
        &[same(Customer::ID), same(Customer::NAME), same(Customer::ADDRESS)],
        &[],
        Vec::new(),
    )
});

static CUSTOM_VIEW: LazyLock<Shape> = LazyLock::new(|| {
    form(&custom_view::CUSTOM_VIEW, &[same(CustomView::LOCATION), same(CustomView::CONTENT)], &[], Vec::new())
});

static OPTION: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &option::OPTION,
        &[
            same(OptionRow::ID),
            same(OptionRow::NAME),
            same(OptionRow::VALUE),
            same(OptionRow::HAS_CONFIGURATION_ERROR),
            same(OptionRow::APPLY_TO_IDP_INSTANCE_ID),
            same(OptionRow::APPLY_TO_MFA_INSTANCE_ID).called("applyToTwoFactorInstanceId"),
            same(OptionRow::APPLY_TO_TENANT_ID),
        ],
        &[],
        Vec::new(),
    )
});

static IDP_INSTANCE: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &idp_instance::IDP_INSTANCE,
        &[
            same(IdpInstance::ID),
            same(IdpInstance::NAME),
            same(IdpInstance::POSITION),
            same(IdpInstance::IS_ACTIVE),
            same(IdpInstance::TREAT_MFA_FACTOR_CLAIMS_AS_CONFIRMED)
                .called("treatSecondFactorClaimsAsConfirmed"),
            same(IdpInstance::AUTO_CREATE_PLATFORM_USER),
            same(IdpInstance::IS_HIDDEN),
            same(IdpInstance::ICON).writable(),
            same(IdpInstance::IDP_TYPE_ID),
            same(IdpInstance::IDP_FACTORY_TYPE),
            same(IdpInstance::SUBSCRIPTION_ID),
            same(IdpInstance::HAS_CONFIGURATION_ERROR),
        ],
        &[
            shown("options").in_form(&OPTION),
            written("twoFactorInstances").of("mfaInstances"),
            written("tenants"),
            written("clientApps"),
            written("certStores"),
            shown("metadata")
                .showing(const { &[IdpInstanceMetadata::KEY.field(), IdpInstanceMetadata::VALUE.field()] }),
        ],
        Vec::new(),
    )
});

static IDP_INSTANCE_METADATA: LazyLock<Shape> = LazyLock::new(|| {
    let members = [
        same(IdpInstanceMetadata::IDP_INSTANCE_ID),
        same(IdpInstanceMetadata::KEY),
        same(IdpInstanceMetadata::VALUE),
    ];
    form(&idp_instance::IDP_INSTANCE_METADATA, &members, &[], Vec::new())
});

static IDP_TYPE: LazyLock<Shape> = LazyLock::new(|| {
    form(
        &idp_type::IDP_TYPE,
        &[
            same(IdpType::ID),
            same(IdpType::NAME),
            same(IdpType::PROVIDER_TYPE).number(),
            same(IdpType::FACTORY_TYPE),
            same(IdpType::IS_ACTIVE),
        ],
        &[shown("twoFactorInstances").of("mfaInstances")],
        Vec::new(),
    )
});

static IP_ADDRESS_RANGE: LazyLock<Shape> = LazyLock::new(|| {
    let members = [
        same(IpAddressRange::ID),
        same(IpAddressRange::LOWER),
        same(IpAddressRange::UPPER),
        same(IpAddressRange::TENANT_ID),
    ];
    form(&ip_address_range::IP_ADDRESS_RANGE, &members, &[], Vec::new())
});

fn resources() -> Vec<Op> {
    let resource = |name, shape, path, successors: &'static [Op]| Resource {
        name,
        shape,
        path,
        successors,
        is_partly_added: name == "Option",
    };
    let metadata = resource(
        "IdpInstanceMetadata",
        &IDP_INSTANCE_METADATA,
        "/IdpInstance/{idpInstanceId}/IdpInstanceMetadata",
        idp_instance::METADATA,
    );
    let resources = [
        resource("CertStore", &CERT_STORE, "/CertStore", &cert_store::OPERATIONS),
        resource("ClaimRule", &CLAIM_RULE, "/ClaimRule", &claim_rule::OPERATIONS),
        resource("CustomAsset", &CUSTOM_ASSET, "/CustomAsset", &custom_asset::OPERATIONS),
        resource("Customer", &CUSTOMER, "/Customer", &customer::OPERATIONS),
        resource("CustomView", &CUSTOM_VIEW, "/CustomView", &custom_view::OPERATIONS),
        resource("IdpInstance", &IDP_INSTANCE, "/IdpInstance", &idp_instance::OPERATIONS),
        resource("IdpType", &IDP_TYPE, "/IdpType", &idp_type::OPERATIONS),
        resource("IpAddressRange", &IP_ADDRESS_RANGE, "/IpAddressRange", &ip_address_range::OPERATIONS),
        resource("Option", &OPTION, "/Option", &option::OPERATIONS),
    ];
    let mut operations: Vec<Op> = resources.iter().chain([&metadata]).flat_map(pattern).collect();
    operations.extend(second_list(&metadata, "/idpInstanceId"));
    operations
}

/// A form of version 2 with one choice written as its number.
fn numbered_form<R: Record>(name: &'static str, numbered: &Field) -> BodyForm {
    let fields: Vec<Field> = R::FIELDS
        .iter()
        .map(|field| match field.kind {
            Kind::Choice(names) if field.is(numbered) => field.with(Kind::Numbered(names), field.access),
            kind => field.with(kind, field.access),
        })
        .collect();
    BodyForm { name, about: R::ABOUT, fields: fields.leak() }
}

static EXPANDER: LazyLock<BodyForm> = LazyLock::new(|| {
    numbered_form::<CustomAssetCreateByExpander>(
        "CustomAssetCreateByExpander",
        CustomAssetCreateByExpander::APPLY_TO_TYPE.field(),
    )
});
static TEMPLATE: LazyLock<BodyForm> = LazyLock::new(|| {
    numbered_form::<CustomViewCreateFromTemplate>(
        "CustomViewCreateFromTemplate",
        CustomViewCreateFromTemplate::APPLY_TO_TYPE.field(),
    )
});

type Outcome = Result<Answer, Problem>;

/// The names of a choice field of a form; none if the field is no numbered choice.
fn choices(fields: &[Field], name: &str) -> &'static [&'static str] {
    match fields.iter().find(|field| field.wire() == name).map(|field| field.kind) {
        Some(Kind::Numbered(names)) => names,
        _ => &[],
    }
}

/// Creates from a form whose choices may be written as numbers.
fn create_from(call: &mut Call, tx: &mut Tx<'_>, form: &'static BodyForm) -> Outcome {
    let names: Vec<(&str, &str)> = form.fields.iter().map(|field| (field.wire(), field.wire())).collect();
    renamed(call, tx, &names, |name, value| match value {
        Json::Int(index) => {
            let known = usize::try_from(*index).ok().and_then(|index| choices(form.fields, name).get(index));
            known.map_or_else(|| value.clone(), |known| Json::Text((*known).to_owned()))
        }
        other => other.clone(),
    })
}

fn expand(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    create_from(call, tx, &EXPANDER)
}

fn from_template(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    create_from(call, tx, &TEMPLATE)
}

fn by_cert_type(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    let names = choices(call.request.op.shape.fields, "certType");
    with_path_name(call, tx, |sent_name| {
        sent_name.parse().ok().and_then(|index: usize| names.get(index)).copied()
    })
}

/// The target types of options, by names and numbers of version 1, and by names of version 2.
const TARGETS: [&str; 6] = ["IdpInstance", "TwoFactorInstance", "Tenant", "0", "1", "2"];
const NEW_TARGETS: [&str; 3] = ["IdpInstance", "MfaInstance", "Tenant"];

fn by_option_target(call: &mut Call, tx: &mut Tx<'_>) -> Outcome {
    let index_of = |sent_name: &str| TARGETS.iter().position(|known| known.eq_ignore_ascii_case(sent_name));
    with_path_name(call, tx, |sent_name| NEW_TARGETS.iter().cycle().nth(index_of(sent_name)?).copied())
}

fn special_operations() -> Vec<Op> {
    let successor = |name: &str| find(&SUCCESSOR, name);
    let in_form_of = |shape: &'static Shape, name: &str| successor(name).in_form(shape);
    known_only([
        in_form_of(&CERT_STORE, "GetCertStoresByType").run_by(by_cert_type),
        in_form_of(&CERT_STORE, "GetCertStoresByTypeAndSubscription").run_by(by_cert_type),
        in_form_of(&CERT_STORE, "GetCertStoresByTypeAndTenant").run_by(by_cert_type),
        in_form_of(&CERT_STORE, "GetCertStoresByTypeAndIdpInstance").run_by(by_cert_type),
        in_form_of(&CUSTOM_ASSET, "GetCustomAssetMimeTypes"),
        in_form_of(&CUSTOM_ASSET, "CreateCustomAssetByExpander").run_by(expand).taking(&EXPANDER),
        in_form_of(&CUSTOM_VIEW, "CreateCustomViewFromTemplate").run_by(from_template).taking(&TEMPLATE),
        in_form_of(&CUSTOM_VIEW, "GetViewTemplateNames"),
        in_form_of(&CUSTOM_VIEW, "GetViewTemplateContent"),
        in_form_of(&IDP_INSTANCE, "GetIdpInstancesByTenantAndClientApp"),
        in_form_of(&IDP_INSTANCE, "GetIdpInstancesByTenant"),
        in_form_of(&IDP_INSTANCE, "GetIdpInstancesBySubscription"),
        successor("CreateIdpInstanceScimToken"),
        in_form_of(&IDP_INSTANCE, "GetIdpInstanceHealth"),
        in_form_of(&IDP_TYPE, "GetIdpTypeByName"),
        in_form_of(&IP_ADDRESS_RANGE, "GetIpAddressRangesByTenant"),
        in_form_of(&OPTION, "GetOptionValueByTypeAndRefAndName").run_by(by_option_target).choosing(&TARGETS),
        in_form_of(&OPTION, "GetOptionByTypeAndRefAndName").run_by(by_option_target).choosing(&TARGETS),
        in_form_of(&OPTION, "GetOptionsByTypeAndRef").run_by(by_option_target).choosing(&TARGETS),
    ])
}

/// The management service, version 1.
pub static SERVICE: LazyLock<Service> = LazyLock::new(|| Service {
    name: "management",
    version: "v1",
    title: "Chancery Management Service, deprecated version 1",
    base: "/api/management/v1",
    is_deprecated: true,
    operations: vec![&*resources().leak(), &*special_operations().leak()].leak(),
});
