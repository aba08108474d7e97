// TypeScript: types, enums, generics, and private fields.
import http, { type RefinedParams, type ResponseType } from 'k6/http';
import { check } from 'k6';

interface Item {
  id: number;
  name?: string;
}

enum Kind {
  Small = 'small',
  Large = 'large',
}

export const options = { vus: 1, iterations: 2 };

class Shop {
  constructor(private readonly base: string) {}
  get<T>(path: string): T {
    const params: RefinedParams<ResponseType> = { headers: { 'x-user': `${__VU}` } };
    const answer = http.get(`${this.base}${path}`, params);
    check(answer, { 'is found': (r) => r.status === 200 });
    return answer.json() as unknown as T;
  }
}

export default function (): void {
  const shop = new Shop(__ENV.BASE_URL);
  const item = shop.get<Item>(`/items/3?kind=${Kind.Large}`);
  shop.get<Item>(`/items/${item!.id + 1}?name=${item.name satisfies string | undefined}`);
}
