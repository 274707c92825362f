//! The rows that a client app is read from.

use std::sync::LazyLock;

use chancery_management::{custom_asset::image_types, idp_instance::HAS_CONFIGURATION_ERROR};
use chancery_store::selectable;
use uuid::Uuid;

selectable! {
    /// The client app itself.
    pub(super) struct ClientAppRow<'r> from "FROM client_app a \
        JOIN subscription y ON y.id = a.subscription_id AND y.status = 'Active' WHERE a.id = ?1" {
        pub(super) id: Uuid = "a.id",
        pub(super) rid: i64 = "a.rid",
        pub(super) subscription: Uuid = "a.subscription_id",
        pub(super) name: String = "a.name",
        pub(super) enabled: bool = "a.enabled",
        pub(super) allow_user_login: bool = "a.allow_user_login",
        pub(super) is_public: bool = "a.is_public",
        pub(super) is_native: bool = "a.is_native_application",
        pub(super) is_restricted: bool = "a.is_restricted",
        pub(super) allow_cross_subscription: bool = "a.allow_cross_subscription",
        pub(super) scope_filter_enabled: bool = "a.scope_filter_enabled",
        pub(super) logout_consent: &'r str = "a.logout_consent",
        pub(super) access_grant_consent: &'r str = "a.access_grant_consent",
        pub(super) allowed_response_types: String = "a.allowed_response_types",
        pub(super) security_profile: &'r str = "a.security_profile",
        pub(super) filters_resources: bool = "a.resource_filter_enabled",
        pub(super) includes_groups: bool = "a.include_groups_claims",
        pub(super) subject_type: &'r str = "a.subject_type",
        pub(super) client_uri: Option<String> = "a.client_uri",
        pub(super) logo_uri: Option<String> = "a.logo_uri",
        pub(super) allows_devices: bool = "a.allow_device_authorization_grant",
        pub(super) pkce: &'r str = "a.pkce",
        pub(super) id_token_claims: &'r str = "a.id_token_claims",
        pub(super) encrypts_access_tokens: Option<bool> = "a.access_token_encryption_enabled_override",
        pub(super) id_token_encryption: Option<&'r str> = "a.id_token_encrypted_response_alg",
        pub(super) userinfo_encryption: Option<&'r str> = "a.userinfo_encrypted_response_alg",
        pub(super) require_pushed_authorization_requests: bool = "a.require_pushed_authorization_requests",
        pub(super) refresh_tokens: &'r str = "a.refresh_tokens",
        pub(super) requires_second_factor: bool =
            "EXISTS (SELECT 1 FROM client_app_mfa_instance m WHERE m.client_app_rid = a.rid)",
    }
}

selectable! {
    /// A redirect URI.
    pub(super) struct RedirectUri<'r> from "FROM client_app_redirect_uri WHERE client_app_id = ?1" {
        pub(super) uri: String = "uri",
        pub(super) kind: &'r str = "redirect_uri_type",
    }
}

/// The keys of the client app's own resources.
pub(super) const RESOURCES: &str =
    "SELECT key FROM client_app_resource WHERE client_app_id = ?1 ORDER BY rid";

selectable! {
    /// A metadata entry of the client app.
    pub(super) struct ClientAppMetadata<'r> from "FROM client_app a JOIN client_app_metadata m ON m.client_app_rid = a.rid \
        WHERE a.id = ?1" {
        pub(super) key: String = "m.key",
        pub(super) value: Option<&'r str> = "m.value",
    }
}

selectable! {
    /// A tenant that the client app serves.
    pub(super) struct TenantRow from "FROM client_app a JOIN tenant_client_app m ON m.client_app_rid = a.rid \
        JOIN tenant t ON t.rid = m.tenant_rid JOIN subscription y ON y.id = t.subscription_id \
        WHERE a.id = ?1 AND t.is_active AND y.status = 'Active' \
        AND (t.subscription_id = a.subscription_id OR a.allow_cross_subscription) ORDER BY t.name_key, t.id" {
        pub(super) id: Uuid = "t.id",
        pub(super) name: String = "t.name",
        pub(super) subscription: Uuid = "t.subscription_id",
    }
}

selectable! {
    /// A user store or an external provider of a tenant, with the location of its picture of one of these types.
    pub(super) struct InstanceRow<'r>(images) {
        pub(super) tenant: Uuid = "t.id",
        pub(super) id: Uuid = "i.id",
        pub(super) is_hidden: bool = "i.is_hidden",
        pub(super) subscription: Uuid = "i.subscription_id",
        pub(super) creates_platform_users: bool = "i.auto_create_platform_user",
        pub(super) name: &'r str = "i.name",
        pub(super) is_store: bool = "i.store_name_key IS NOT NULL",
        pub(super) idp_type: &'r str = "i.idp_type",
        pub(super) is_trusted: bool = "i.treat_mfa_factor_claims_as_confirmed",
        pub(super) icon: Option<&'r str> =
            "(SELECT c.location FROM custom_asset c WHERE c.location = i.icon AND c.mimetype IN ({images}))",
    }
}

/// The usable instances. A provider without one of its mandatory options is not usable.
pub(super) static INSTANCES: LazyLock<String> = LazyLock::new(|| {
    let images = image_types().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
    format!(
        "SELECT {} FROM client_app a JOIN idp_instance_client_app m ON m.client_app_rid = a.rid \
         JOIN idp_instance i ON i.rid = m.idp_instance_rid JOIN idp_type y ON y.id = i.idp_type_id \
         JOIN tenant_idp_instance n ON n.idp_instance_rid = i.rid JOIN tenant t ON t.rid = n.tenant_rid \
         WHERE a.id = ?1 AND i.is_active AND y.is_active AND NOT {HAS_CONFIGURATION_ERROR} \
         ORDER BY i.position, i.name_key, i.id",
        InstanceRow::columns(&images)
    )
});

selectable! {
    /// An option of a tenant.
    pub(super) struct TenantOptionRow<'r> from "FROM client_app a \
        JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
        JOIN option_value o ON o.apply_to_tenant_id = t.id WHERE a.id = ?1" {
        pub(super) tenant: Uuid = "t.id",
        pub(super) name: &'r str = "o.name",
        pub(super) value: &'r str = "o.value",
        pub(super) is_wrong: bool = "o.has_configuration_error",
    }
}

selectable! {
    /// An option of a user store.
    pub(super) struct StoreOptionRow<'r> from "FROM client_app a \
        JOIN idp_instance_client_app m ON m.client_app_rid = a.rid JOIN idp_instance i ON i.rid = m.idp_instance_rid \
        JOIN option_value o ON o.apply_to_idp_instance_id = i.id WHERE a.id = ?1 AND i.store_name_key IS NOT NULL" {
        pub(super) store: Uuid = "i.id",
        pub(super) name: &'r str = "o.name",
        pub(super) value: &'r str = "o.value",
    }
}

selectable! {
    /// A metadata entry of an instance.
    pub(super) struct InstanceMetadata<'r> from "FROM client_app a \
        JOIN idp_instance_client_app m ON m.client_app_rid = a.rid JOIN idp_instance i ON i.rid = m.idp_instance_rid \
        JOIN idp_instance_metadata e ON e.idp_instance_rid = i.rid WHERE a.id = ?1" {
        pub(super) instance: Uuid = "i.id",
        pub(super) key: &'r str = "e.key",
        pub(super) value: Option<&'r str> = "e.value",
    }
}

selectable! {
    /// A usable MFA instance of a tenant, with whether the client app requires it.
    pub(super) struct FactorRow<'r> from "FROM client_app a \
        JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
        JOIN tenant_mfa_instance n ON n.tenant_rid = t.rid JOIN mfa_instance f ON f.rid = n.mfa_instance_rid \
        JOIN idp_type y ON y.id = f.idp_type_id WHERE a.id = ?1 AND f.is_active AND y.is_active \
        AND NOT EXISTS (SELECT 1 FROM option_value o WHERE o.apply_to_mfa_instance_id = f.id \
        AND o.has_configuration_error) ORDER BY f.position, f.name_key, f.id" {
        pub(super) tenant: Uuid = "t.id",
        pub(super) id: Uuid = "f.id",
        pub(super) idp_type: &'r str = "f.idp_type",
        pub(super) is_of_application: bool = "EXISTS (SELECT 1 FROM client_app_mfa_instance c \
            WHERE c.client_app_rid = a.rid AND c.mfa_instance_rid = f.rid)",
    }
}

selectable! {
    /// An option of an MFA instance.
    pub(super) struct FactorOptionRow<'r> {
        pub(super) factor: Uuid = "f.id",
        pub(super) name: &'r str = "o.name",
        pub(super) value: &'r str = "o.value",
    }
}

/// The options of the MFA instances, each once: several tenants may have the instance.
pub(super) static FACTOR_OPTIONS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT DISTINCT {} FROM client_app a JOIN tenant_client_app m ON m.client_app_rid = a.rid \
         JOIN tenant_mfa_instance n ON n.tenant_rid = m.tenant_rid JOIN mfa_instance f ON f.rid = n.mfa_instance_rid \
         JOIN option_value o ON o.apply_to_mfa_instance_id = f.id WHERE a.id = ?1",
        FactorOptionRow::COLUMNS
    )
});

selectable! {
    /// An address range of a tenant.
    pub(super) struct AddressRange<'r> from "FROM client_app a \
        JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
        JOIN ip_address_range r ON r.tenant_id = t.id WHERE a.id = ?1 ORDER BY r.rid" {
        pub(super) tenant: Uuid = "r.tenant_id",
        pub(super) lower: &'r str = "r.lower",
        pub(super) upper: &'r str = "r.upper",
    }
}

/// The tenants with questionnaire items.
pub(super) const TENANTS_WITH_QUESTIONNAIRE: &str = "SELECT t.id FROM client_app a \
    JOIN tenant_client_app m ON m.client_app_rid = a.rid JOIN tenant t ON t.rid = m.tenant_rid \
    WHERE a.id = ?1 AND EXISTS (SELECT 1 FROM user_questionnaire_item q WHERE q.tenant_id = t.id)";

selectable! {
    /// An MFA instance that an instance requires.
    pub(super) struct RequiredFactor from "FROM client_app a \
        JOIN idp_instance_client_app m ON m.client_app_rid = a.rid JOIN idp_instance i ON i.rid = m.idp_instance_rid \
        JOIN idp_instance_mfa_instance l ON l.idp_instance_rid = i.rid JOIN mfa_instance f ON f.rid = l.mfa_instance_rid \
        WHERE a.id = ?1" {
        pub(super) instance: Uuid = "i.id",
        pub(super) factor: Uuid = "f.id",
    }
}
