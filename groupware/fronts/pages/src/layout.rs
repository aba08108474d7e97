//! The frame of every page, and its headers.

use axum::response::{IntoResponse, Redirect, Response};
use groupware_calendar as calendar;
use groupware_mail::{self as mail, Folder, FolderLine};
use groupware_service::Service;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::error::PageError;
use crate::mail::text;
use crate::notice::{self, Notice};
use crate::visitor::SignedIn;
use crate::{assets, forgery};

/// Permits resources of this server only; no script or style within a page.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// Most invitations that are counted.
const MOST_COUNTED: usize = 99;

/// The part of the navigation that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavItem {
    /// A folder, or another page of mails.
    Mail(Option<Folder>),
    Calendar,
    Invitations,
    Settings,
    /// The users, for administrators.
    Users,
}

/// Returns a page of a signed-in user.
///
/// # Errors
/// When the store fails.
pub(crate) fn page(
    service: &Service,
    visitor: &SignedIn,
    here: NavItem,
    title: &str,
    main: &Markup,
) -> Result<Response, PageError> {
    page_with(service, visitor, (here, StatusCode::OK), title, main)
}

/// Returns a page of mails whose folders were read already.
///
/// # Errors
/// When the store fails.
pub(crate) fn mail_page(
    service: &Service,
    visitor: &SignedIn,
    (folder, folders): (Folder, Vec<FolderLine>),
    title: &str,
    main: &Markup,
) -> Result<Response, PageError> {
    let counted = Counted::of_mail(service, visitor, folders)?;
    let here = (NavItem::Mail(Some(folder)), StatusCode::OK);
    Ok(framed(visitor, &counted, here, title, main))
}

/// Works as [`page`], with another status than 200.
///
/// # Errors
/// When the store fails.
pub(crate) fn page_with(
    service: &Service,
    visitor: &SignedIn,
    (here, status): (NavItem, StatusCode),
    title: &str,
    main: &Markup,
) -> Result<Response, PageError> {
    let counted = Counted::of(service, visitor, here)?;
    Ok(framed(visitor, &counted, (here, status), title, main))
}

fn framed(
    visitor: &SignedIn,
    counted: &Counted,
    (here, status): (NavItem, StatusCode),
    title: &str,
    main: &Markup,
) -> Response {
    let body = html! {
        div.frame {
            (side(visitor, here, counted))
            main #main tabindex="-1" {
                (said(visitor.notice))
                (main)
            }
        }
    };
    let mut response = document(status, title, &body);
    if visitor.notice.is_some() {
        response.headers_mut().append(SET_COOKIE, notice::said());
    }
    response
}

/// Permits embedded pictures on a page: browsers run no scripts in them.
pub(crate) fn allow_data(page: &mut Response) {
    let policy = POLICY.replace("img-src 'self'", "img-src 'self' data:");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
}

/// The numbers that the navigation shows.
struct Counted {
    invitations: usize,
    unread: usize,
    /// The folders, on pages of mails.
    folders: Vec<FolderLine>,
    used_bytes: u64,
    quota_bytes: Option<u64>,
}

impl Counted {
    fn of(service: &Service, visitor: &SignedIn, here: NavItem) -> Result<Self, PageError> {
        let mailbox = visitor.mailbox();
        if let NavItem::Mail(_) = here {
            let folders = groupware_service::mail::read(service, |snapshot| {
                mail::all_folders(snapshot, mailbox)
            })?;
            return Self::of_mail(service, visitor, folders);
        }
        let inbox = groupware_service::mail::read(service, |snapshot| {
            mail::counts(snapshot, mailbox, Folder::Inbox)
        })?;
        Ok(Self {
            invitations: invitations(service, visitor)?,
            unread: usize::try_from(inbox.unread).unwrap_or(usize::MAX),
            folders: Vec::new(),
            used_bytes: 0,
            quota_bytes: service.mail_quota_bytes(),
        })
    }

    /// The numbers of the folders.
    fn of_mail(
        service: &Service,
        visitor: &SignedIn,
        folders: Vec<FolderLine>,
    ) -> Result<Self, PageError> {
        let inbox = folders.iter().find(|line| line.folder == Folder::Inbox);
        let unread = inbox.map_or(0, |line| line.counts.unread);
        Ok(Self {
            invitations: invitations(service, visitor)?,
            unread: usize::try_from(unread).unwrap_or(usize::MAX),
            used_bytes: folders.iter().map(|line| line.counts.bytes).sum(),
            folders,
            quota_bytes: service.mail_quota_bytes(),
        })
    }
}

/// The number of invitations that await an answer, up to the maximum count.
fn invitations(service: &Service, visitor: &SignedIn) -> Result<usize, PageError> {
    let mailbox = visitor.mailbox();
    Ok(groupware_service::calendar::read(service, |snapshot| {
        calendar::count_invitations(snapshot, mailbox, MOST_COUNTED + 1)
    })?)
}

fn side(visitor: &SignedIn, here: NavItem, counted: &Counted) -> Markup {
    let is_mail = matches!(here, NavItem::Mail(_));
    html! {
        header.side {
            a.brand href="/" { (mark()) "Plimsoll" }
            nav.main aria-label="Main" {
                ul {
                    (place(is_mail, "/box/inbox", "Mail", &count(counted.unread, "unread")))
                    (place(here == NavItem::Calendar, "/calendar", "Calendar", &html! {}))
                    (place(here == NavItem::Invitations, "/invitations", "Invitations",
                        &count(counted.invitations, "unanswered")))
                    @if visitor.is_admin {
                        (place(here == NavItem::Users, "/users", "Users", &html! {}))
                    }
                    (place(here == NavItem::Settings, "/settings", "Settings", &html! {}))
                }
            }
            @if let NavItem::Mail(current) = here { (folders(current, counted)) }
            div.account {
                p.who { (visitor.owner.name()) }
                p.zone { "Times in " a href="/settings" title=(visitor.zone.name()) { (visitor.zone.place()) } }
                form method="post" action="/sign-out" {
                    (proof(visitor))
                    button.quiet type="submit" { "Sign out" }
                }
            }
        }
    }
}

fn folders(current: Option<Folder>, counted: &Counted) -> Markup {
    html! {
        div.mailbox {
            a.button.primary href=(text::WRITE) { "Write" }
            nav.folders aria-label="Folders" {
                ul {
                    @for line in &counted.folders {
                        @let number = usize::try_from(match line.folder {
                            Folder::Drafts => line.counts.messages,
                            Folder::Sent | Folder::Trash => 0,
                            _ => line.counts.unread,
                        }).unwrap_or(usize::MAX);
                        @let of_what = if line.folder == Folder::Drafts { "drafts" } else { "unread" };
                        (place(current == Some(line.folder), &text::path(line.folder), &line.name,
                            &count(number, of_what)))
                    }
                    li { a.quiet href="/folders" { "Own folders …" } }
                }
            }
            (room(counted))
        }
    }
}

/// How full the mailbox is.
fn room(counted: &Counted) -> Markup {
    let used = text::size_text(counted.used_bytes);
    html! {
        @match counted.quota_bytes {
            Some(quota) => {
                label.room {
                    (used) " of " (text::size_text(quota)) " used"
                    meter min="0" max=(quota) high=(quota / 10 * 9) value=(counted.used_bytes.min(quota)) {}
                }
            }
            None => p.room { (used) " used" },
        }
    }
}

fn place(is_here: bool, path: &str, name: &str, count: &Markup) -> Markup {
    html! {
        li { a href=(path) aria-current=[is_here.then_some("page")] { span.name { (name) } (count) } }
    }
}

fn count(number: usize, of_what: &str) -> Markup {
    html! {
        @if number > MOST_COUNTED {
            " " span.count { (MOST_COUNTED) "+" span.unseen { " " (of_what) } }
        } @else if number > 0 {
            " " span.count { (number) span.unseen { " " (of_what) } }
        }
    }
}

fn said(notice: Option<Notice>) -> Markup {
    html! { @if let Some(notice) = notice { p.notice role="status" { (notice.text()) } } }
}

/// The token of a user's forms.
pub(crate) fn proof(visitor: &SignedIn) -> Markup {
    html! { input type="hidden" name=(forgery::FIELD) value=(visitor.proof); }
}

/// A page for failures, or visitors that aren't signed in: a card in the middle.
pub(crate) fn card(status: StatusCode, title: &str, main: &Markup) -> Response {
    let body = html! {
        div.lone {
            header { a.brand href="/" { (mark()) "Plimsoll" } }
            main #main .card tabindex="-1" { (main) }
        }
    };
    document(status, title, &body)
}

/// Returns a card with a notice.
pub(crate) fn card_saying(
    status: StatusCode,
    title: &str,
    notice: Option<Notice>,
    main: &Markup,
) -> Response {
    let mut response = card(status, title, &html! { (said(notice)) (main) });
    if notice.is_some() {
        response.headers_mut().append(SET_COOKIE, notice::said());
    }
    response
}

/// After a form: redirects to another page, which shows the notice.
pub(crate) fn done(path: &str, notice: Notice) -> Response {
    let mut response = Redirect::to(path).into_response();
    response.headers_mut().append(SET_COOKIE, notice.cookie());
    response
}

fn document(status: StatusCode, title: &str, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Plimsoll" }
                link rel="stylesheet" href=(assets::STYLE.path);
                link rel="icon" type="image/svg+xml" href=(assets::ICON.path);
                script src=(assets::SCRIPT.path) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (body)
            }
        }
    };
    let mut response = (status, axum::response::Html(page.into_string())).into_response();
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 5] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // A stricter policy would send forms without their origin.
        (REFERRER_POLICY, "same-origin"),
        // A page belongs to one user and moment; after signing out, the browser must have none.
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The icon.
fn mark() -> Markup {
    PreEscaped(
        "<svg class=\"mark\" viewBox=\"0 0 32 32\" aria-hidden=\"true\" focusable=\"false\">\
         <circle cx=\"16\" cy=\"16\" r=\"9\"/><path d=\"M2 16h28\"/></svg>"
            .to_owned(),
    )
}
