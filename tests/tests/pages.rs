//! The pages in a real browser: the life cycle of a mail and of a meeting between two users, on a phone's screen with
//! JavaScript, and on a desktop's without.

use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use plimsoll_tests::browser::Driver;
use plimsoll_tests::server::{Client as Http, ServerProcess};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery staple";
const USERS: [&str; 2] = ["ada", "ben"];
const LIMIT: Duration = Duration::from_secs(120);
const PHONE_WIDTH: u32 = 390;

#[test]
fn with_javascript_on_a_phone() {
    let metrics = json!({ "width": PHONE_WIDTH, "height": 844, "pixelRatio": 1, "touch": false });
    let options = json!({ "mobileEmulation": { "deviceMetrics": metrics } });
    in_a_browser("pages with JavaScript", options, true);
}

#[test]
fn without_javascript_on_a_desk() {
    let off = json!({ "profile.managed_default_content_settings.javascript": 2 });
    in_a_browser("pages without JavaScript", json!({ "prefs": off }), false);
}

/// Runs both life cycles in a browser with these options.
fn in_a_browser(test: &str, mut options: Value, is_scripted: bool) {
    let Some(driver) = Driver::start(test) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder for the server");
    let server = ServerProcess::start(folder.path());
    let mut admin = Http::admin(server.address()).expect("the server accepts connections");
    for name in USERS {
        let path = format!("/admin/users/{name}");
        let made = admin.request("PUT", &path, &json!({ "password": PASSWORD }));
        assert_eq!(made.expect("an answer").status, 201);
    }
    // More folders than a phone has room for, each with unread mail.
    for number in 0..8 {
        let path = format!("/admin/users/{}/mail?folder=Travels%20{number}", USERS[0]);
        let made = admin.send("POST", &path, &[], b"Subject: away\r\n\r\ntext\r\n");
        assert_eq!(made.expect("an answer").status, 201);
    }
    let file = folder.path().join("plan.txt");
    std::fs::write(&file, "the plan").expect("a file to send");
    options["binary"] = json!(driver.browser());
    options["args"] = json!([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
    ]);
    let capabilities = json!({ "goog:chromeOptions": options });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let capabilities = capabilities.as_object().expect("an object").clone();
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&driver.url())
            .await
            .expect("the browser starts");
        let browser = Browser {
            client: client.clone(),
            root: format!("http://{}", server.address()),
            is_scripted,
        };
        // A separate task, so that the browser is closed whatever the result.
        let lived = tokio::spawn(async move {
            mail(&browser, file.to_str().expect("a plain path")).await;
            meeting(&browser).await;
        })
        .await;
        let _ = client.close().await;
        if let Err(error) = lived {
            std::panic::resume_unwind(error.into_panic());
        }
    });
}

/// One browser, in which the users sign in one after the other.
struct Browser {
    client: Client,
    root: String,
    is_scripted: bool,
}

impl Browser {
    async fn open(&self, path: &str) {
        let url = format!("{}{path}", self.root);
        self.client.goto(&url).await.expect("the page opens");
        self.fits().await;
    }

    async fn find(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(LIMIT);
        let found = found.for_element(Locator::Css(css)).await;
        match found {
            Ok(element) => element,
            Err(error) => panic!("{css}: {error}\n{}", self.text().await),
        }
    }

    async fn click(&self, css: &str) {
        let clicked = self.find(css).await.click().await;
        clicked.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Presses the button, or follows the link, of this name.
    async fn press(&self, name: &str) {
        let path = format!(
            "//main//*[self::button or self::a or self::summary][normalize-space()='{name}']"
        );
        let waited = self.client.wait().at_most(LIMIT);
        match waited.for_element(Locator::XPath(&path)).await {
            Ok(element) => element.click().await.expect("it can be pressed"),
            Err(error) => panic!("{name}: {error}\n{}", self.text().await),
        }
    }

    /// Puts a text into the field of this name.
    async fn fill(&self, name: &str, text: &str) {
        let field = self.find(&format!("[name='{name}']")).await;
        if name != "files" {
            field.clear().await.expect("it can be emptied");
        }
        field.send_keys(text).await.expect("it can be typed into");
    }

    async fn text(&self) -> String {
        let body = self.client.find(Locator::Css("body")).await;
        let body = body.expect("every page has a body");
        body.text().await.unwrap_or_default()
    }

    /// Waits until the page has this text.
    async fn sees(&self, text: &str) {
        let path = format!("//body[contains(normalize-space(), \"{text}\")]");
        let waited = self.client.wait().at_most(LIMIT);
        if let Err(error) = waited.for_element(Locator::XPath(&path)).await {
            panic!("{text}: {error}\n{}", self.text().await);
        }
        self.fits().await;
    }

    /// Asserts that no page is wider than its window.
    async fn fits(&self) {
        if self.is_scripted {
            let script = "return document.documentElement.scrollWidth";
            let width = self.client.execute(script, Vec::new()).await;
            let width = width.expect("scripts run").as_u64().expect("a number");
            let url = self.client.current_url().await.expect("a page is open");
            assert!(width <= PHONE_WIDTH.into(), "{url} is {width} wide");
        }
    }

    async fn sign_in(&self, name: &str) {
        self.open("/").await;
        self.fill("username", name).await;
        self.fill("password", PASSWORD).await;
        self.click("main button").await;
        self.find("nav.folders [aria-current=page]").await;
    }

    async fn sign_out(&self) {
        self.click(".account button").await;
        self.sees("You are signed out.").await;
    }
}

async fn mail(browser: &Browser, file: &str) {
    let [ada, ben] = USERS;
    // A page requested before signing in opens after it.
    browser.open("/calendar/week").await;
    browser.fill("username", ada).await;
    browser.fill("password", "wrong").await;
    browser.click("main button").await;
    browser.sees("The user name or password is wrong.").await;
    browser.fill("password", PASSWORD).await;
    browser.click("main button").await;
    browser.sees("Nothing in this week yet.").await;

    browser.click("nav.main a[href='/box/inbox']").await;
    browser
        .sees("Nothing here: you have read and filed everything.")
        .await;
    browser.click(".mailbox .button").await;
    browser.fill("to", "nobody").await;
    browser.fill("subject", "Plans <b>").await;
    browser.fill("text", "Have a look.").await;
    browser.fill("files", file).await;
    browser.press("Send").await;
    browser.sees("No such user here: nobody.").await;
    browser.fill("to", ben).await;
    browser.press("Send").await;
    browser.sees("The mail is sent.").await;
    browser.sign_out().await;

    browser.sign_in(ben).await;
    browser.find(".mails .unread").await;
    browser.click(".mails .subject a").await;
    browser.sees("Have a look.").await;
    browser.sees("plan.txt").await;
    browser.press("Reply").await;
    let text = browser.find("[name=text]").await;
    text.send_keys("I did.")
        .await
        .expect("it can be typed into");
    browser.press("Send").await;
    browser.sees("The mail is sent.").await;
    browser.sign_out().await;

    browser.sign_in(ada).await;
    browser.sees("Re: Plans <b>").await;
    browser.click(".mails [name=pick]").await;
    browser.press("Delete").await;
    browser.sees("Moved to the trash.").await;
    browser.open("/box/trash").await;
    browser.click(".mails [name=pick]").await;
    browser.press("Delete for good").await;
    browser.sees("can't be brought back").await;
    browser.press("Delete for good").await;
    browser.sees("Deleted for good.").await;
    browser.sees("The trash is empty.").await;
    browser.sign_out().await;
}

async fn meeting(browser: &Browser) {
    let [ada, ben] = USERS;
    browser.sign_in(ada).await;
    browser.click("nav.main a[href='/calendar']").await;
    browser.click("main .tools .primary").await;
    browser.fill("title", "Load test").await;
    browser.fill("people", ben).await;
    browser.press("Add to calendar").await;
    browser
        .sees("The meeting is in your calendar, and its people are invited.")
        .await;
    browser.sees("no answer yet").await;
    let path = browser.client.current_url().await.expect("a page is open");
    let path = path.path().to_owned();
    browser.sign_out().await;

    browser.sign_in(ben).await;
    browser.click("nav.main a[href='/invitations']").await;
    browser.sees("Load test").await;
    browser.click(".invitations button[value=accept]").await;
    browser.sees("You have accepted").await;
    browser.open("/calendar/week").await;
    browser.open(&path).await;
    browser.sees("You come.").await;
    browser.sign_out().await;

    browser.sign_in(ada).await;
    browser.open(&path).await;
    browser.sees("comes").await;
    browser.press("Change").await;
    browser.fill("place", "Room Tern").await;
    browser.press("Save").await;
    browser
        .sees("The meeting is changed, and its people see it.")
        .await;
    browser.sees("no answer yet").await;
    browser.sign_out().await;

    browser.sign_in(ben).await;
    browser.click("nav.main a[href='/invitations']").await;
    browser.sees("Room Tern").await;
    browser.click(".invitations h2 a").await;
    browser.press("Send somebody else").await;
    browser.fill("delegate", "nobody").await;
    browser.press("Delegate").await;
    browser.sees("There is no user called “nobody” here.").await;
    browser.press("Decline").await;
    browser.sees("You have declined").await;
    browser.sign_out().await;

    browser.sign_in(ada).await;
    browser.open(&path).await;
    browser.sees("doesn't come").await;
    browser.press("Call off").await;
    browser.sees("Call off this meeting?").await;
    browser.press("Call it off").await;
    browser.sees("The meeting is called off").await;
    browser.open(&path).await;
    browser.sees("Not found").await;
}
