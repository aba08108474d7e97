use super::run;
#[test]
fn scratch() {
    for text in [
        "const seen = []; http.get('http://shop/').html().find('a').each((i, el) => { http.get('http://shop/1'); }); return seen;",
        "const seen = []; const s = http.get('http://shop/').html().find('a'); s.each((i, el) => { seen.push(http.get('http://shop' + el.getAttribute('href')).status); }); return seen;",
        "const seen = []; const s = http.get('http://shop/').html().find('a'); s.each((i, el) => { http.get('http://shop' + el.getAttribute('href')); }); return seen;",
        "const seen = []; const s = http.get('http://shop/').html().find('a'); s.each((i, el) => { seen.push(http.get('http://shop').status); }); return seen;",
    ] {
        let script =
            format!("import http from 'k6/http';\nexport default function () {{\n{text}\n}}");
        let done = run(&script, "<a href='/1'>1</a><a href='/2'>2</a>");
        println!("{text}\n{:?}\n{:?}\n", done.result, done.logs());
    }
}
