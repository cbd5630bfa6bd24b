// The components' own outline of a field is too faint to be seen by everybody (WCAG 1.4.11), and hard to outweigh.
const field = {
  '&&[data-variant]': { boxShadow: '0 0 0 1px var(--line-strong)' },
  '&&[data-variant]:focus': { boxShadow: '0 0 0 2px var(--brand)' },
  '&&[data-variant][data-focus-within="true"]': { boxShadow: '0 0 0 2px var(--brand)' },
  '&&[data-variant][aria-invalid="true"]': { boxShadow: '0 0 0 2px var(--danger)' },
};

/** One flat colour, as the site's own buttons have. */
const primaryButton = {
  minHeight: '2.5rem',
  '&&[data-variant]': { boxShadow: 'none', '@media (forced-colors: active)': { border: '1px solid' } },
  '&&[data-variant]::after': { background: 'none' },
};

/**
 * Dresses the provider's components in this site's own tokens, which follow the colour scheme. The components set
 * variables of their own on their elements, `--accent` among them: the site's names must differ.
 */
export const clerkAppearance = {
  variables: {
    colorPrimary: 'var(--brand)',
    colorPrimaryForeground: 'var(--on-brand)',
    colorBackground: 'var(--surface)',
    colorForeground: 'var(--ink)',
    colorMuted: 'var(--sunken)',
    colorMutedForeground: 'var(--ink-soft)',
    colorNeutral: 'var(--ink)',
    colorInput: 'var(--surface)',
    colorInputForeground: 'var(--ink)',
    colorBorder: 'var(--line-strong)',
    colorRing: 'var(--brand)',
    colorDanger: 'var(--danger)',
    colorShadow: 'var(--shadow)',
    borderRadius: '0.5rem',
    fontFamily: 'var(--sans)',
    fontFamilyButtons: 'var(--sans)',
    fontSize: '0.9375rem',
  },
  elements: {
    formFieldInput: field,
    otpCodeFieldInput: field,
    formButtonPrimary: primaryButton,
  },
};

/** For a form that fills its room, where the component's own would take the width of the window. */
export const fillingAppearance = {
  elements: { rootBox: { width: '100%' }, cardBox: { width: '100%', maxWidth: '100%' } },
};
