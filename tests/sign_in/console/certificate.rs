//! Certificates: upload in two steps, and successors.

use chancery_testkit::on_both_engines;
use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::{Value, json};

use super::{administrator, hidden, post};
use crate::{certificate, id};

const NEW: &str = "/console/CertStore/new";

/// The file and the key of an upload body.
fn file(body: &Value) -> (&str, &str) {
    let input = &body["certificateInput"];
    (input["data"].as_str().unwrap(), input["privateKey"].as_str().unwrap())
}

on_both_engines! {
    /// Nothing is stored before the contents of the file were shown, and no page shows its key.
    async fn a_certificate_file_is_shown_before_it_is_stored(world: World) {
        let mut browser = administrator(&world).await;
        let empty = browser.open("/console/CertStore").await;
        assert!(empty.html.contains("own keys are used"), "{}", empty.html);
        let (body, _) = certificate::body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({}));
        let (data, key) = file(&body);
        let page = browser.open(NEW).await;
        let typed = [("name", "portal"), ("certType", "Default"), ("data", data), ("privateKey", key)];
        let read = post(&world, &mut browser, &page, NEW, &typed).await;
        assert!(read.status == 200 && read.html.contains("2080-12-31") && read.html.contains("This certificate can be stored"), "{}", read.html);
        assert!(!read.html.contains("PRIVATE KEY") && !read.html.contains(&key[40..80]), "{}", read.html);
        assert_eq!(world.all("CertStore").await, json!([]));
        let (sealed, once) = (hidden(&read, "sealed"), hidden(&read, "key"));
        let fields_of_review = [("sealed", sealed.as_str()), ("key", once.as_str())];
        for _ in 0..2 {
            let stored = post(&world, &mut browser, &read, NEW, &fields_of_review).await;
            assert!(stored.html.contains("<h1>portal"), "{}", stored.html);
        }
        assert_eq!(world.all("CertStore").await.as_array().unwrap().len(), 1, "a second click keeps no second");
        let list = browser.open("/console/CertStore").await;
        assert!(list.html.contains("portal") && list.html.contains("Valid"), "{}", list.html);
        let forged = post(&world, &mut browser, &read, NEW, &[("sealed", "AAAA")]).await;
        assert_eq!(forged.status, 409, "{}", forged.html);
    }

    async fn errors_of_a_certificate_file_are_shown_at_its_field(world: World) {
        let mut browser = administrator(&world).await;
        let page = browser.open(NEW).await;
        let (body, _) = certificate::body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({}));
        let (data, key) = file(&body);
        for file in ["", "nonsense", &data[..200]] {
            let response = post(&world, &mut browser, &page, NEW, &[("name", "portal"), ("certType", "Default"), ("data", file)]).await;
            assert!(response.status == 400 && response.html.contains("href=\"#f-data\"") && response.html.contains("value=\"portal\""), "{}", response.html);
        }
        let both = format!("{data}{key}");
        let response = post(&world, &mut browser, &page, NEW, &[("certType", "Default"), ("data", &both)]).await;
        assert!(response.status == 400 && response.html.contains("href=\"#f-name\"") && !response.html.contains("PRIVATE KEY"), "{}", response.html);
    }

    /// With several subscriptions, the owner is a required choice.
    async fn a_certificate_belongs_to_a_selected_subscription(world: World) {
        let mut browser = administrator(&world).await;
        let customer = world.all("Customer").await[0].clone();
        let other = world.make("Subscription", json!({ "name": "Quay", "customerId": customer["id"] })).await;
        let (body, _) = certificate::body(&PKCS_ECDSA_P256_SHA256, 2080, &json!({}));
        let typed = [("name", "portal"), ("certType", "OidcTokenEncryption"), ("data", file(&body).0)];
        let page = browser.open(NEW).await;
        let response = post(&world, &mut browser, &page, NEW, &typed).await;
        assert!(response.status == 400 && response.html.contains("href=\"#f-subscriptionId\"") && response.html.contains("id=\"f-subscriptionId\""), "{}", response.html);
        let typed: Vec<_> = typed.into_iter().chain([("subscriptionId", id(&other))]).collect();
        let read = post(&world, &mut browser, &response, NEW, &typed).await;
        assert!(read.status == 200 && read.html.contains("This certificate can be stored"), "{}", read.html);
    }

    /// The successor of a signing certificate: one that is valid longer, one with a wider scope, or the installation's
    /// own key.
    async fn signing_certificates_are_sorted_by_expiry_and_show_their_successor(world: World) {
        let mut browser = administrator(&world).await;
        let tenant = world.all("Tenant").await[0].clone();
        let of_tenant = json!({ "name": "of the tenant", "certType": "OidcTokenSigning", "applyToTenantId": tenant["id"] });
        let short = certificate::upload(&world, &PKCS_ECDSA_P256_SHA256, 2040, of_tenant.clone()).await;
        let path = format!("/console/CertStore/{}", id(&short.store));
        let alone = browser.open(&path).await;
        assert!(alone.html.contains("own key signs") && alone.html.contains("2040-12-31"), "{}", alone.html);
        let everyones = json!({ "name": "for everyone", "certType": "Default" });
        certificate::upload(&world, &PKCS_ECDSA_P256_SHA256, 2060, everyones).await;
        let page = browser.open(&path).await;
        assert!(page.html.contains("Then it is signed by for everyone"), "{}", page.html);
        let mut longer = of_tenant;
        longer["name"] = json!("its successor");
        certificate::upload(&world, &PKCS_ECDSA_P256_SHA256, 2050, longer).await;
        let page = browser.open(&path).await;
        assert!(page.html.contains("its successor is valid longer"), "{}", page.html);
        let list = browser.open("/console/CertStore").await;
        let at = |name: &str| list.html.find(name).unwrap();
        assert!(at("of the tenant") < at("its successor") && at("its successor") < at("for everyone"), "{}", list.html);
        assert!(list.html.contains(tenant["name"].as_str().unwrap()), "{}", list.html);
    }

    /// The successor of a certificate that decrypts or verifies: another one of its type, with all providers that use it.
    async fn decryption_certificates_show_their_successor_and_providers(world: World) {
        let mut browser = administrator(&world).await;
        let instances = world.all("IdpInstance").await;
        let opening = |name: &str| json!({ "name": name, "certType": "OidcTokenEncryption" });
        let link = async |store: &Value| {
            let path = format!("/api/management/v2/CertStore/{}/idpinstances", id(store));
            world.admin.put(&path, json!({ "relatedIds": [id(&instances[0])] })).await.expect(202);
        };
        let short = certificate::upload(&world, &PKCS_ECDSA_P256_SHA256, 2040, opening("first")).await;
        let path = format!("/console/CertStore/{}", id(&short.store));
        let alone = browser.open(&path).await;
        assert!(alone.html.contains("Then it has no successor."), "{}", alone.html);
        let longer = certificate::upload(&world, &PKCS_ECDSA_P256_SHA256, 2050, opening("second")).await;
        let page = browser.open(&path).await;
        assert!(page.html.contains("Then it is replaced by second"), "{}", page.html);
        link(&short.store).await;
        let page = browser.open(&path).await;
        assert!(page.html.contains("Then it has no successor at: default"), "{}", page.html);
        link(&longer.store).await;
        let page = browser.open(&path).await;
        assert!(page.html.contains("Then it is replaced by second"), "{}", page.html);
    }
}
