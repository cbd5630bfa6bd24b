// The input fields of the provider's components have an outline with too little contrast (WCAG 1.4.11). `&&` repeats the
// class in the selector, so that the rule has a higher specificity than the component's own rule.
const field = {
  '&&[data-variant]': { boxShadow: '0 0 0 1px var(--line-strong)' },
  '&&[data-variant]:focus': { boxShadow: '0 0 0 2px var(--brand)' },
  '&&[data-variant][data-focus-within="true"]': { boxShadow: '0 0 0 2px var(--brand)' },
  '&&[data-variant][aria-invalid="true"]': { boxShadow: '0 0 0 2px var(--danger)' },
};

/** Removes the shadow and the gradient of the provider's button, so that it looks like the site's own buttons. */
const primaryButton = {
  minHeight: '2.5rem',
  '&&[data-variant]': { boxShadow: 'none', '@media (forced-colors: active)': { border: '1px solid' } },
  '&&[data-variant]::after': { background: 'none' },
};

/**
 * Applies the site's color variables to the provider's components. The variables follow the light or dark color scheme. The
 * components define variables such as `--accent` on their own elements. The site's variables must have other names, because
 * the components would override them.
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

/** Makes a form as wide as its container. By default, the width of the window limits the width of the form. */
export const fillingAppearance = {
  elements: { rootBox: { width: '100%' }, cardBox: { width: '100%', maxWidth: '100%' } },
};
