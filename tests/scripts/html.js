// Pages: selections, forms, and links.
import http from 'k6/http';
import { parseHTML } from 'k6/html';

export const options = { vus: 1, iterations: 1 };
const base = __ENV.BASE_URL;

export default function () {
  const params = { headers: { 'x-user': `${__VU}` } };
  const page = http.get(`${base}/html`, params);
  const doc = page.html();
  const found = {
    title: doc.find('title').text(),
    links: doc.find('a').toArray().map((a) => a.attr('href')),
    token: doc.find('input[name=token]').attr('value'),
    size: doc.find('li').size(),
    second: doc.find('li').eq(1).text(),
    value: doc.find('input[name=token]').val(),
    class: page.html('ul').children().first().attr('class'),
    missing: String(doc.find('li').attr('none')),
  };
  http.post(`${base}/echo`, JSON.stringify(found), params);
  page.submitForm({ formSelector: '#search', fields: { q: 'lamp' }, params });
  page.submitForm({ formSelector: '#login', fields: { user: 'ann' }, submitSelector: '#go', params });
  page.clickLink({ selector: 'a.next', params });
  const own = parseHTML('<p class="a">one <b>two</b></p>');
  http.get(`${base}/echo?text=${own.find('b').text()}&html=${encodeURIComponent(own.find('p').html())}`, params);
}
