//! The parameters of a list, parsed from a query string.

use groupware_text::shortened;

use crate::{MailError, Unid, limits};

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// By arrival.
    #[default]
    Received,
    /// By the date in the message's header.
    Date,
    /// By subject, case-insensitively.
    Subject,
    /// By author, case-insensitively.
    From,
    /// By size.
    Size,
}

/// The part of a folder to list, and its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Entries to skip.
    pub start: usize,
    /// The maximum number of entries to return.
    pub count: usize,
    /// Starts after this message, in the folder's own order: a deep page costs no more than the
    /// first. `start` then only numbers the entries.
    pub after: Option<Unid>,
    /// Text that the subject, the author, or a recipient must contain, case-insensitively.
    pub search: Option<String>,
    /// The maximum number of messages that a search finds.
    pub search_max: Option<usize>,
    /// The order.
    pub sort: Sort,
    /// Ascending order, from the smallest or oldest on.
    pub ascending: bool,
    /// The prefix that the sorted column must have, case-insensitively.
    pub keys: Option<String>,
    /// The column must be equal to `keys`.
    pub exact: bool,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            start: 0,
            count: limits::DEFAULT_PAGE_ENTRIES,
            after: None,
            search: None,
            search_max: None,
            sort: Sort::default(),
            ascending: false,
            keys: None,
            exact: false,
        }
    }
}

impl ListQuery {
    /// Parses the parameters of a list; ignores unknown ones.
    ///
    /// # Errors
    /// A refusal of an invalid value.
    pub fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, MailError> {
        let mut query = Self::default();
        let (mut start, mut count, mut page, mut size, mut order) = (None, None, None, None, None);
        for (name, value) in pairs {
            match name {
                "start" => start = Some(number(name, value)?),
                "count" => count = Some(number(name, value)?),
                "page" => page = Some(number(name, value)?),
                "ps" => size = Some(number(name, value)?),
                "after" => query.after = Some(unid(value)?),
                "search" => query.search = text(name, value)?,
                "searchmaxdocs" => query.search_max = Some(number(name, value)?),
                "sortcolumn" => query.sort = column(value),
                "sortorder" => order = Some(value),
                "keys" => query.keys = text(name, value)?,
                "keysexactmatch" => query.exact = value.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        query.ascending = match order {
            None => matches!(query.sort, Sort::Subject | Sort::From),
            Some(order) if order.eq_ignore_ascii_case("ascending") => true,
            Some(order) if order.eq_ignore_ascii_case("descending") => false,
            Some(_) => {
                let message = "The parameter sortorder is ascending or descending.";
                return Err(MailError::bad_request(message));
            }
        };
        query.count = size.or(count).unwrap_or(limits::DEFAULT_PAGE_ENTRIES);
        if !(1..=limits::PAGE_ENTRIES).contains(&query.count) {
            let message = format!("A page has 1 to {} entries.", limits::PAGE_ENTRIES);
            return Err(MailError::bad_request(message));
        }
        query.start = match page {
            Some(page) => page.saturating_mul(query.count),
            None => start.unwrap_or_default(),
        };
        Ok(query)
    }

    /// Returns true if the list is the folder in its own order, from the newest on.
    pub(crate) fn is_plain(&self) -> bool {
        self.search.is_none()
            && self.keys.is_none()
            && self.sort == Sort::Received
            && !self.ascending
    }
}

/// An unknown column has no effect, as in Domino.
fn column(value: &str) -> Sort {
    match value.to_ascii_lowercase().as_str() {
        "date" => Sort::Date,
        "subject" => Sort::Subject,
        "from" | "sender" | "who" => Sort::From,
        "size" => Sort::Size,
        _ => Sort::Received,
    }
}

fn number(name: &str, value: &str) -> Result<usize, MailError> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let read = value.parse::<u32>().ok().filter(|_| is_number);
    let read = read.and_then(|number| usize::try_from(number).ok());
    read.ok_or_else(|| {
        let shown = shortened(value).escape_debug().to_string();
        MailError::bad_request(format!("The parameter {name} is a number, not {shown}."))
    })
}

fn text(name: &str, value: &str) -> Result<Option<String>, MailError> {
    if value.len() > limits::SEARCH_BYTES {
        let most = limits::SEARCH_BYTES;
        let message = format!("The parameter {name} has at most {most} bytes.");
        return Err(MailError::bad_request(message));
    }
    Ok(Some(value.to_lowercase()).filter(|text| !text.is_empty()))
}

fn unid(value: &str) -> Result<Unid, MailError> {
    Unid::parse(value).ok_or_else(|| {
        MailError::bad_request("The parameter after is a message's 32 hexadecimal digits.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<ListQuery, MailError> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        ListQuery::parse(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))))
    }

    #[test]
    fn pages_are_given_in_either_way() {
        let range = |query| parse(query).map(|it| (it.start, it.count)).ok();
        assert_eq!(range(""), Some((0, 10)));
        assert_eq!(range("start=5&count=50"), Some((5, 50)));
        assert_eq!(range("ps=20&page=3"), Some((60, 20)));
        assert_eq!(
            range("ps=1000&page=4294967295"),
            Some((4_294_967_295_000, 1000))
        );
        for bad in [
            "count=0", "ps=1001", "start=-1", "start=+1", "count=x", "page=",
        ] {
            assert_eq!(range(bad), None, "{bad}");
        }
    }

    #[test]
    fn orders_are_read() {
        let order = |query| parse(query).map(|it| (it.sort, it.ascending)).ok();
        assert_eq!(order(""), Some((Sort::Received, false)));
        assert_eq!(order("sortcolumn=Subject"), Some((Sort::Subject, true)));
        let query = "sortcolumn=from&sortorder=descending";
        assert_eq!(order(query), Some((Sort::From, false)));
        assert_eq!(
            order("sortcolumn=nope&sortorder=ascending"),
            Some((Sort::Received, true))
        );
        assert_eq!(order("sortorder=up"), None);
    }
}
