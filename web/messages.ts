/**
 * Messages in the page's language. They are written in English where they are shown; the page brings
 * their translations from the server's catalogue (src/podium/studio/translations.py).
 */

type Forms = Partial<Record<Intl.LDMLPluralRule, string>>;
type Values = Record<string, string | number>;

const LANGUAGE = document.documentElement.lang || "en";
const NUMBERS = new Intl.NumberFormat(LANGUAGE);
const PLURALS = new Intl.PluralRules(LANGUAGE);
const catalogue = JSON.parse(
  document.getElementById("messages")?.textContent ?? "{}",
) as Record<string, string | Forms>;

/** A message, with `%(name)s` replaced by the value of that name. */
export function gettext(message: string, values: Values = {}): string {
  const translation = catalogue[message];
  return fill(typeof translation === "string" ? translation : message, values);
}

/** A message that has a form for one and another for several; `%(count)s` is the number. */
export function ngettext(one: string, several: string, count: number, values: Values = {}): string {
  const forms = catalogue[one];
  const english = count === 1 ? one : several;
  const form = typeof forms === "object" ? (forms[PLURALS.select(count)] ?? forms.other) : undefined;
  return fill(form ?? english, { count, ...values });
}

function fill(template: string, values: Values): string {
  return template.replace(/%\((\w+)\)s/g, (whole, name: string) => {
    const value = values[name];
    return typeof value === "number" ? NUMBERS.format(value) : (value ?? whole);
  });
}
