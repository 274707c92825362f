//! Import of users from a file: validated by cell, then imported in one transaction.

use chancery_testkit::{World, on_both_engines};
use serde_json::{Value, json};

use super::{Browser, Page, administrator, encode, post};
use crate::{each, id};

const PATH: &str = "/console/store/default/User/import";

/// Sends a table for validation, or to import it with these confirmed numbers.
async fn send(world: &World, browser: &mut Browser, text: &str, sure: &str) -> Page {
    let page = browser.open(PATH).await;
    post(world, browser, &page, PATH, &[("text", text), ("sure", sure)]).await
}

/// The numbers that a page asks to confirm.
fn confirmation_of(page: &Page) -> String {
    let rest = page.html.split("name=\"sure\" value=\"").nth(1);
    rest.unwrap_or_else(|| panic!("nothing to confirm: {}", page.html)).split('"').next().unwrap().to_owned()
}

async fn named(world: &World, login_name: &str) -> Value {
    let filter = encode(&format!("loginName eq \"{login_name}\""));
    world.admin.get(&world.path(&format!("/User?filter={filter}"))).await.is(200).json()[0].clone()
}

on_both_engines! {
    async fn an_import_creates_changes_and_skips_users(world: World) {
        let mut browser = administrator(&world).await;
        world.group("Sales").await;
        world.group("R&D, Berlin").await;
        let old = json!({ "loginName": "grace", "firstName": "Grace", "emailAddress": "g@example.com", "emailAddressConfirmed": true, "nickname": "Amazing" });
        world.admin.post(&world.path("/User"), old).await.expect(201);
        world.admin.post(&world.path("/User"), json!({ "loginName": "alan", "firstName": "Alan" })).await.expect(201);
        let text = "Benutzername;Vorname;E-Mail;Aktiv;userValidTo;Gruppen;Abteilung\r\n\
            ada2;Ada;ada2@example.com;ja;31.12.2027;Sales|R&D, Berlin;Math\r\n\
            GRACE;Grace;hopper@example.com;nein;;sales;Navy\r\n\
            alan;Alan;;;;;\r\n";
        let list = browser.open("/console/store/default/User").await;
        assert!(list.html.contains(PATH), "{}", list.html);
        let response = send(&world, &mut browser, text, "").await;
        assert_eq!(confirmation_of(&response), "1/1/1/3", "{}", response.html);
        assert!(response.html.contains("Abteilung") && response.html.contains("ada2"), "{}", response.html);
        assert!(named(&world, "ada2").await.is_null(), "a check makes nobody");
        let done = send(&world, &mut browser, text, &confirmation_of(&response)).await;
        assert!(done.html.contains("Imported"), "{}", done.html);
        let (ada, grace) = (named(&world, "ada2").await, named(&world, "grace").await);
        assert_eq!(each(&ada["memberOfGroups"], "name"), ["Sales", "R&D, Berlin"]);
        assert_eq!((&ada["userValidTo"], &ada["isUserActive"]), (&json!("2027-12-31T00:00:00.000Z"), &json!(true)));
        assert_eq!((&grace["emailAddress"], &grace["emailAddressConfirmed"]), (&json!("hopper@example.com"), &json!(false)), "another address is not confirmed");
        assert_eq!((&grace["nickname"], &grace["isUserActive"]), (&json!("Amazing"), &json!(false)), "what no cell says stays");
        // importing it again changes nothing
        let again = send(&world, &mut browser, text, &confirmation_of(&response)).await;
        assert!(again.html.contains("Nothing to do"), "{}", again.html);
    }

    /// Errors are reported by line, column and cell, and nothing is imported.
    async fn an_invalid_cell_prevents_the_import(world: World) {
        let mut browser = administrator(&world).await;
        world.user("taken").await;
        let text = "loginName,emailAddress,isUserActive,groups,locale\n\
            good,good@example.com,yes,,\n\
            bad,no address,yes,,\n\
            worse,w@example.com,perhaps,,\n\
            lost,l@example.com,yes,Nowhere,\n\
            good,again@example.com,yes,,\n\
            ,nobody@example.com,yes,,\n\
            taken,,,,<b onx>\n";
        let response = send(&world, &mut browser, text, "1/0/0/0").await;
        assert_eq!(response.status, 400, "{}", response.html);
        for (line, what) in [(3, "E-mail address"), (4, "perhaps"), (5, "Nowhere"), (6, "in line 2"), (7, "no login name"), (8, "&lt;b onx&gt;")] {
            let row = response.html.split(&format!("Line {line}</th>")).nth(1).unwrap_or_else(|| panic!("{line}: {}", response.html));
            assert!(row.split("</tr>").next().unwrap().contains(what), "{line} {what}: {row}");
        }
        assert!(!response.html.contains("name=\"sure\"") && !response.html.contains("<b onx>"), "{}", response.html);
        assert!(response.html.contains("no address,yes"), "what was typed stays: {}", response.html);
        assert!(named(&world, "good").await.is_null());
    }

    /// A file that is no table is refused with a reason.
    async fn a_file_that_is_no_table_is_refused(world: World) {
        let mut browser = administrator(&world).await;
        let many: String = (0..10_001).map(|number| format!("u{number}\n")).collect();
        for (text, said) in [
            ("", "This is not a table"),
            ("loginName\n", "This is not a table"),
            ("firstName\nAda", "The column Login name is missing"),
            ("loginName,Benutzername\na,b", "Two columns belong to the same field: Benutzername"),
            ("loginName\n\"a", "begin in line 2 are not closed"),
            (&format!("loginName\n{many}"), "At most 10000 users"),
        ] {
            let response = send(&world, &mut browser, text, "").await;
            assert!(response.status == 400 && response.html.contains(said), "{said}: {}", &response.html[..response.html.len().min(9_000)]);
        }
    }

    /// The import applies what was confirmed: if the numbers have changed meanwhile, they are shown again.
    async fn an_import_plan_that_changed_is_shown_again(world: World) {
        let mut browser = administrator(&world).await;
        let text = "loginName,firstName\nnew.one,New\nold.one,Old\n";
        let response = send(&world, &mut browser, text, "").await;
        assert_eq!(confirmation_of(&response), "2/0/0/0");
        world.admin.post(&world.path("/User"), json!({ "loginName": "old.one", "firstName": "Elder" })).await.expect(201);
        let again = send(&world, &mut browser, text, &confirmation_of(&response)).await;
        assert_eq!(confirmation_of(&again), "1/1/0/0", "{}", again.html);
        assert!(named(&world, "new.one").await.is_null());
        send(&world, &mut browser, text, &confirmation_of(&again)).await.answer.expect(200);
        assert_eq!(named(&world, "old.one").await["firstName"], json!("Old"));
    }

    /// A large import; a single invalid cell in it is found.
    async fn many_users_are_imported_at_once(world: World) {
        let mut browser = administrator(&world).await;
        let group = world.group("Crew").await;
        let rows: String = (0..1_200).map(|number| format!("crew{number:04},Crew,Number {number},c{number}@example.com,Crew\n")).collect();
        let text = format!("login,first name,last name,mail,groups\n{rows}");
        let wrong = send(&world, &mut browser, &text.replace("c777@example.com", "c777"), "").await;
        assert!(wrong.html.contains("Line 779</th>") && wrong.html.contains("<b>1199</b>") && wrong.html.matches("scope=\"row\"").count() == 1, "{}", &wrong.html[..4_000]);
        let response = send(&world, &mut browser, &text, "").await;
        assert_eq!(confirmation_of(&response), "1200/0/0/1200");
        let done = send(&world, &mut browser, &text, &confirmation_of(&response)).await;
        assert!(done.html.contains("Imported"), "{}", &done.html[..4_000]);
        let members = world.admin.get(&world.path(&format!("/Group/{}", id(&group)))).await.is(200).json();
        assert_eq!(members["memberUsers"].as_array().unwrap().len(), 1_200);
    }
}
