import { text } from ".";

/** What a code says, in words, where there are any. */
export function ofCode(code: string): string | undefined {
  return own(text.codes, code);
}

/** What it is that changed, in words: the field of a configuration, or one of several that have names of their own. */
export function ofPart(field: string): string | undefined {
  const whole = own(text.parts, field);
  if (whole !== undefined) return whole;
  const [group = "", ...name] = field.split(".");
  const word = name.length > 0 ? own(text.parts, group) : undefined;
  return word && `${word} ${name.join(".")}`;
}

function own(words: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(words, key) ? words[key] : undefined;
}
